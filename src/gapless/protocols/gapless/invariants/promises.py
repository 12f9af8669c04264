"""I1 for acceptors: every acknowledged entry is on disk, and is part of every later promise.

A broker counts an entry as replicated when an acceptor has sent `Held`. So `Held` must be true of the acceptor's disk,
and must not exceed the length at which the acceptor promised to stop; and a promise must not report less than was
acknowledged, up to the sealed length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gapless.protocol import Effect, Input, InvariantError, Keep, Persisted, Send
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Held
from gapless.protocols.gapless.membership_messages import Promise
from gapless.protocols.gapless.messages import Frame
from gapless.protocols.gapless.state import BrokerState

__all__ = ["PromiseInvariants"]


@dataclass
class _Disk:
    """The contents of a broker's disk, derived from the batches written to it."""

    persisted: int = 0
    batches: list[tuple[int, dict[Incarnation, int]]] = field(default_factory=list)
    """Batches in flight, each with the lengths of the journals after it."""
    lengths: dict[Incarnation, int] = field(default_factory=dict)


@dataclass
class _AcceptorPromises:
    """The promises and votes of an acceptor's incarnation about the journals of one broker."""

    below: int = 0
    lengths: dict[int, int] = field(default_factory=dict)
    """The lengths of the sealed journals at the time of the promise to accept no more entries."""
    held: dict[int, int] = field(default_factory=dict)
    """The largest acknowledged length for each incarnation."""


class PromiseInvariants:
    """Checks acceptors and disks."""

    def __init__(self) -> None:
        self._disks: dict[str, _Disk] = {}
        self._acceptor_promises: dict[tuple[Incarnation, str], _AcceptorPromises] = {}

    def begin(self, name: str, state: BrokerState) -> None:
        """Register a broker that starts with the contents of its disk."""
        self._disks[name] = _Disk(lengths={each: end for each, (_, end) in state.disk.written.items()})

    def on_disk(self, s: BrokerState, journal: Incarnation) -> int | None:
        """Return how much of a journal is on the broker's disk; None if it has no disk."""
        return self._disks[s.name].lengths.get(journal, 0) if s.disk.is_there else None

    def after_step(self, s: BrokerState, item: Input, effects: Sequence[Effect]) -> None:
        """Check the messages that the broker has just sent."""
        if s.disk.is_there:
            self._note_disk(s, item, effects)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Frame):
                frame = effect.message
                if isinstance(frame.body, Held):
                    self._check_held(s, Incarnation(effect.peer, frame.receiver), frame.body.length)
                elif isinstance(frame.body, Promise):
                    self._check_promise(s, frame.body)

    def _note_disk(self, s: BrokerState, item: Input, effects: Sequence[Effect]) -> None:
        disk = self._disks[s.name]
        if isinstance(item, Persisted):
            disk.persisted = max(disk.persisted, item.number)
            while disk.batches and disk.batches[0][0] <= disk.persisted:
                disk.lengths |= disk.batches.pop(0)[1]
        for effect in effects:
            if isinstance(effect, Keep):
                disk.batches.append((effect.number, {each: end for each, (_, end) in s.disk.written.items()}))

    def _promises_of(self, s: BrokerState, broker: str) -> _AcceptorPromises:
        return self._acceptor_promises.setdefault((s.incarnation, broker), _AcceptorPromises())

    def _check_held(self, s: BrokerState, journal: Incarnation, length: int) -> None:
        written = self.on_disk(s, journal)
        if written is not None and written < length:
            raise InvariantError(
                "I1", f"{_text(s.incarnation)} says that it holds {length} entries of {_text(journal)}, "
                f"but its disk has {written}",
            )  # fmt: skip
        promises = self._promises_of(s, journal.broker)
        if journal.number < promises.below and length > promises.lengths.get(journal.number, 0):
            raise InvariantError(
                "I1", f"{_text(s.incarnation)} holds {length} entries of {_text(journal)}, and had promised to hold no "
                f"more than {promises.lengths.get(journal.number, 0)}",
            )  # fmt: skip
        promises.held[journal.number] = max(length, promises.held.get(journal.number, 0))

    def _check_promise(self, s: BrokerState, promise: Promise) -> None:
        broker = promise.state.broker
        held_lengths = {Incarnation(*copy.incarnation).number: copy.length for copy in promise.state.copies}
        sealed = dict(s.status(broker).lengths)
        for number, held in self._promises_of(s, broker).held.items():
            length = min(held, sealed.get(number, held))  # entries beyond the sealed length were never valid
            if number < promise.below and held_lengths.get(number, 0) < length:
                raise InvariantError(
                    "I1", f"{_text(s.incarnation)} promises with {held_lengths.get(number, 0)} entries of "
                    f"{broker}#{number}, and had acknowledged {length}",
                )  # fmt: skip

    def note_promises(self, s: BrokerState) -> None:
        """Check that no promise is withdrawn, and record new promises."""
        for broker, acceptor in s.acceptors.items():
            if not acceptor.promised_below or not acceptor.has_recovered:
                continue
            promises = self._promises_of(s, broker)
            if acceptor.promised_below < promises.below:
                raise InvariantError("I1", f"{_text(s.incarnation)} withdraws its promise about {broker}")
            if acceptor.promised_below > promises.below:
                promises.below = acceptor.promised_below
                for each, journal in s.journals.items():
                    if each.broker == broker and each.number < promises.below:
                        promises.lengths.setdefault(each.number, len(journal))


def _text(incarnation: Any) -> str:
    return f"{incarnation.broker}#{incarnation.number}"
