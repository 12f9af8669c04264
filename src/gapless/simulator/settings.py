"""What a run of the simulator can be told, with a bound on everything that could run away."""

import msgspec

from gapless.simulator.latency import Latency

__all__ = ["NodeModel", "Settings"]


class NodeModel(msgspec.Struct, frozen=True):
    """What a message costs a broker, besides the latency of the link (the propagation)."""

    processing_us: int
    """How long a broker is busy with each message that it receives."""
    transmission_us: int
    """How long a broker is busy with each copy that it sends."""
    free: frozenset[str] = frozenset()
    """Kinds of messages, by the names of their types, that cost nothing."""


class Settings(msgspec.Struct, frozen=True):
    """Everything about a run but the tree, the protocol and the script."""

    latency: Latency = Latency()
    detect_least_us: int = 50_000
    """No failure is noticed sooner: an impatient detector suspects the living."""
    detect_most_us: int = 150_000
    """Every failure is noticed by then; each observer draws its own delay."""
    reconnect_least_us: int = 0
    reconnect_most_us: int = 0
    """How long after both ends can talk again they have a connection; each pair draws its own delay."""
    loss: float = 0.0
    """Probability that a message between brokers gets lost."""
    duplication: float = 0.0
    """Probability that a message between brokers arrives a second time."""
    node_model: NodeModel | None = None
    sync_us: tuple[int, int] | None = None
    """How long a disk takes to sync, at least and at most; None if brokers have no disks."""
    sample_us: int = 0
    """How often the sizes of the brokers' states are looked at; 0 means at the end only."""
    max_steps: int = 20_000_000
    """A run that takes more is taken for one that never ends."""
