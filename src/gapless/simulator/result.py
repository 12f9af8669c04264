"""The results of a simulated run."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gapless.simulator.queueing import QueueLength
from gapless.trace import Trace

__all__ = ["LostPublications", "Refusal", "Result", "SizeSummary", "StateSizes"]


class Refusal(msgspec.Struct, frozen=True):
    """A client's call that the protocol refused."""

    time_us: int
    client: str
    call: str
    reason: str


class LostPublications(msgspec.Struct, frozen=True):
    """Ranges of a client's publications that were reported to the client as lost, with the time."""

    publisher: str
    first: int
    last: int
    time_ms: float


class SizeSummary(msgspec.Struct, frozen=True):
    """Statistics of the amount of one kind of state over all brokers."""

    max: int
    mean: float


class Result(msgspec.Struct, frozen=True):
    """The result of one run."""

    trace: Trace | None
    """The trace of the run, or None without a recorder."""
    quiesced: bool
    """Whether all scripted actions and faults are over, and the network had time to settle."""
    message_counts: dict[str, int]
    """The number of messages sent, by the name of their type."""
    messages_lost: int
    steps: int
    """The number of inputs passed to nodes, and of actions in the script."""
    time_us: int
    """The virtual time at the end of the run."""
    state_sizes: dict[str, SizeSummary]
    """For each kind of state, statistics over all brokers and samples."""
    state_sizes_by_broker: dict[str, dict[str, int]]
    """For each broker and kind of state, the largest of all samples."""
    queues: dict[str, QueueLength]
    """The queue length of each broker; empty without a node model."""
    refusals: tuple[Refusal, ...]
    lost_publications: tuple[LostPublications, ...] = ()
    """The confirmed publications that were reported to publishers as lost."""
    lost_deliveries: int = 0
    """The number of losses reported to subscriptions, except events that were too old to be kept."""
    confirmations: Mapping[str, Sequence[tuple[int, int]]] = {}
    """For each publisher, the times in microseconds at which it learned that everything up to a number is confirmed."""

    @property
    def messages(self) -> int:
        """Return the total number of messages."""
        return sum(self.message_counts.values())


class StateSizes:
    """Samples of the amount of state that each broker keeps."""

    def __init__(self) -> None:
        self._largest: dict[str, dict[str, int]] = {}
        self._total: dict[str, int] = {}
        self._samples: dict[str, int] = {}

    def sample(self, sizes: Iterable[tuple[str, Mapping[str, int]]]) -> None:
        """Add a sample of every running broker."""
        for name, by_kind in sizes:
            largest = self._largest.setdefault(name, {})
            for kind, size in by_kind.items():
                largest[kind] = max(largest.get(kind, 0), size)
                self._total[kind] = self._total.get(kind, 0) + size
                self._samples[kind] = self._samples.get(kind, 0) + 1

    def by_broker(self) -> dict[str, dict[str, int]]:
        """Return the largest sample for each broker and kind."""
        return self._largest

    def summary(self) -> dict[str, SizeSummary]:
        """Return the statistics over all brokers and samples."""
        return {
            kind: SizeSummary(
                max(largest.get(kind, 0) for largest in self._largest.values()), total / self._samples[kind]
            )
            for kind, total in sorted(self._total.items())
        }
