"""What one life puts on its disk, and what it lets wait until the disk has it. Nothing waits where there is no disk."""

from collections import deque
from collections.abc import Callable

from gapless.protocol import Keep
from gapless.protocols.gapless.disk import INTERVAL_KEYS, STATUS_KEY, Disk
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.recovery.found import Found
from gapless.protocols.gapless.recovery.state import BrokerState

__all__ = ["Persistence"]


class Persistence:
    """One life and its disk."""

    def __init__(
        self,
        state: BrokerState,
        library: Library,
        disk: Disk,
        life: int,
        answer: Callable[[str, int, int], None],
    ) -> None:
        """`answer` tells a life of a broker up to which number its journal is held here."""
        self._state = state
        self._library = library
        self._disk = disk
        self._life = life
        self._tell = answer
        self._waits = disk.is_there and "synced" not in state.options.switched_off
        self._answers: deque[tuple[int, str, int, int]] = deque()
        """What to say when the disk has a batch: the batch, the broker, its life, and up to which number it is held."""
        self._entries: deque[tuple[int, int]] = deque()
        """The number of a batch, and up to which number it brings the journal."""
        self._noted = 0
        self._version = -1
        if disk.is_there:
            self._connect()

    def _connect(self) -> None:
        journal, index, name = self._state.journal, self._library.index, self._state.name
        journal.is_on_disk = True
        journal.persisted = 0 if self._waits else None
        journal.note = lambda message: self._disk.append(name, self._life, message)
        journal.keep_inherited = lambda events: self._library.history.keep_inherited(name, events)
        index.kept = lambda interval: self._disk.put(f"{INTERVAL_KEYS}{interval.until}", interval)
        index.forgotten = lambda interval: self._disk.delete(f"{INTERVAL_KEYS}{interval.until}")
        self._state.membership.has_disk = True

    # ---- earlier and later lives --------------------------------------------------------------------------

    def take_over(self, found: Found) -> None:
        """Begin with what an earlier life left."""
        state = self._state
        state.membership.merge({name: value for name, value in found.status.items() if name != state.name})
        state.estates.find(found.copies, found.over)
        state.waves.final = found.index.last
        state.waves.see(max(found.index.last, found.history.last))

    def give_up(self, life: int) -> Found:
        """What this life leaves to the next."""
        state = self._state
        copies = state.estates.all_copies()
        if state.journal.number:
            copies[state.name, life] = state.journal.copy
        return Found({}, copies, state.estates.over(), self._library.history, self._library.index)

    # ---- what waits ---------------------------------------------------------------------------------------

    def answer(self, peer: str, life: int, number: int) -> None:
        """Tell a broker that its journal is held up to a number, as soon as it is."""
        if self._waits:
            self._answers.append((self._disk.next, peer, life, number))
        else:
            self._tell(peer, life, number)

    def end(self, peer: str) -> None:
        """That broker keeps its journal elsewhere: it waits for no answer."""
        if self._answers:
            self._answers = deque(item for item in self._answers if item[1] != peer)

    def persisted(self, number: int) -> None:
        """The disk has all up to this batch."""
        self._library.history.persisted = number
        while self._entries and self._entries[0][0] <= number:
            self._state.journal.persisted = self._entries.popleft()[1]
        due: dict[tuple[str, int], int] = {}
        while self._answers and self._answers[0][0] <= number:
            _, peer, life, held = self._answers.popleft()
            due[peer, life] = held
        for (peer, life), held in due.items():
            self._tell(peer, life, held)

    # ---- the end of a step --------------------------------------------------------------------------------

    def end_step(self) -> list[Keep]:
        """What this step has to keep: one batch, or nothing."""
        state, disk = self._state, self._disk
        if state.membership.version != self._version:
            self._version = state.membership.version
            disk.put(STATUS_KEY, state.membership.status)
            if self._life and state.membership.was_taken_in:
                state.estates.drop_found()
        if self._library.history.mirror is not None:
            self._library.history.mirror.end_step()
        for broker, life in disk.due():
            is_own = (broker, life) == (state.name, self._life)
            whole = state.journal.whole() if is_own else state.estates.whole(broker, life)
            if whole is not None:
                disk.write(broker, life, whole)
        if self._waits and state.journal.number > self._noted:
            self._noted = state.journal.number
            self._entries.append((disk.next, self._noted))
        batch = disk.take()
        return [] if batch is None else [batch]
