"""The settings of a simulated run, with a bound on everything that could grow without end."""

import msgspec

from gapless.simulator.latency import Latency

__all__ = ["NodeModel", "Settings"]


class NodeModel(msgspec.Struct, frozen=True):
    """The cost of messages for brokers, besides the latency of links."""

    processing_us: int
    """How long a broker is busy with each message that it receives."""
    transmission_us: int
    """How long a broker is busy with each copy that it sends."""
    free: frozenset[str] = frozenset()
    """The names of message types that cost nothing."""


class Settings(msgspec.Struct, frozen=True):
    """All settings of a run, except the tree, the protocol and the script."""

    latency: Latency = Latency()
    detect_least_us: int = 50_000
    """The minimum time to detect a failure. With a small value, running nodes are suspected."""
    detect_most_us: int = 150_000
    """The maximum time to detect a failure; each observer draws its own delay."""
    reconnect_least_us: int = 0
    reconnect_most_us: int = 0
    """The maximum time to reconnect after both ends can communicate again; each pair draws its own delay."""
    loss: float = 0.0
    """Probability that a message between brokers gets lost."""
    duplication: float = 0.0
    """Probability that a message between brokers arrives a second time."""
    node_model: NodeModel | None = None
    sync_us: tuple[int, int] | None = None
    """The minimum and maximum time of a sync, or None if brokers have no disks."""
    sample_us: int = 0
    """The interval at which brokers' state is sampled; 0 means only at the end."""
    schedule: str = "latency"
    """The order of deliveries: `latency`, or priorities (`pct:D`; see `priorities`)."""
    max_steps: int = 20_000_000
    """The number of steps after which a run counts as one that never ends."""
