"""What one keeper of names holds, and when it may say so.

The records of named subscriptions are kept by the 2f + 1 brokers in the middle of the tree, the root and those nearest
to it (all, if there are fewer). A record is changed only if a majority of them agrees (`proposals`), so whatever
survives f of them, and nobody has to know who lives.

A keeper that has started again may have forgotten what it had agreed to: it comes without memory, or with an old disk.
It agrees to nothing before it has asked the others, as soon as it is there, and has heard

- so many who know that they have lost nothing that one of them was part of whatever majority it was part of itself; or
- all of them: then nobody knows more; or
- after `return_ms`, all but f of them, or all but f - 1 if it comes without memory: more do not come back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.messages import AskNames, Ballot, NameEntry, NameRecord, NamesAnswer

__all__ = ["FULL", "NAMES_MAX", "NAME_KEYS", "Register", "keepers_of"]

NAME_KEYS = "name/"
NOTHING: Ballot = (0, "")
FULL: Ballot = (1 << 62, "full")
"""What is promised of a name for which there is no room."""
NAMES_MAX = 10_000
PAGE = 100
"""Names that are told in one message."""
_decode = msgspec.msgpack.Decoder(NameEntry).decode


def keepers_of(root: str, nearest: Iterable[str], f: int) -> list[str]:
    """The keepers of names."""
    return [root, *nearest][: 2 * f + 1]


class Register:
    """One keeper, through all lives of one start of its broker."""

    def __init__(
        self, name: str, keepers: list[str], f: int, disk: Disk, entries: Mapping[str, bytes] | None, *, is_first: bool
    ) -> None:
        """`entries` is what the disk holds, if there is one; `is_first` if the broker never lived before."""
        self.name = name
        self.keepers = keepers
        self.majority = len(keepers) // 2 + 1
        self.is_sure = is_first or len(keepers) == 1
        """Whether it knows that it has lost nothing."""
        self.written = 0
        """The number of the batch with the last change: until the disk has it, nothing is said of what it holds."""
        self.persisted = 0
        """The last batch that the disk has."""
        self._disk = disk
        found = [_decode(blob) for key, blob in (entries or {}).items() if key.startswith(NAME_KEYS)]
        self.entries: dict[str, NameEntry] = {entry.name: entry for entry in found}
        self._spared = f if entries else f - 1
        """How many others need not be heard, once those who come back have had time for it."""
        self._heard: dict[str, bool] = {}
        """Of those who have told all they hold, whether they are sure."""
        self._after: dict[str, str] = {}

    @property
    def is_keeper(self) -> bool:
        """Whether this broker is one of them."""
        return self.name in self.keepers

    # ---- what others want ---------------------------------------------------------------------------------

    def promise(self, name: str, ballot: Ballot) -> NameEntry:
        """Listen to no smaller ballot from now on, unless a larger one was promised."""
        entry = self._entry(name)
        if name not in self.entries and len(self.entries) >= NAMES_MAX:
            return NameEntry(name, FULL, NOTHING, None)
        if ballot > entry.promised:
            entry = self._put(msgspec.structs.replace(entry, promised=ballot))
        return entry

    def accept(self, ballot: Ballot, record: NameRecord) -> NameEntry:
        """Hold the record, unless a larger ballot was promised."""
        entry = self._entry(record.name)
        if ballot >= entry.promised:
            entry = self._put(NameEntry(record.name, ballot, ballot, record))
        return entry

    def page(self, request: int, after: str) -> NamesAnswer:
        """Some of what it holds."""
        names = sorted(name for name in self.entries if name > after)[:PAGE]
        return NamesAnswer(request, after, self.is_sure, [self.entries[name] for name in names])

    def records(self) -> Iterator[NameRecord]:
        """All that it holds of names that are not over."""
        for entry in self.entries.values():
            if entry.record is not None and not entry.record.is_over:
                yield entry.record

    def _entry(self, name: str) -> NameEntry:
        return self.entries.get(name) or NameEntry(name, NOTHING, NOTHING, None)

    def _put(self, entry: NameEntry) -> NameEntry:
        self.entries[entry.name] = entry
        self._disk.put(f"{NAME_KEYS}{entry.name}", entry)
        if self._disk.is_there:
            self.written = self._disk.next
        return entry

    # ---- after a restart ----------------------------------------------------------------------------------

    def recover(self, send: Callable[[str, AskNames], None]) -> None:
        """Ask those who have not told all that they hold."""
        for keeper in self.keepers:
            if keeper != self.name and keeper not in self._heard:
                send(keeper, AskNames(0, self._after.get(keeper, "")))

    def hear(self, peer: str, answer: NamesAnswer, send: Callable[[str, AskNames], None]) -> None:
        """Another keeper tells what it holds."""
        if self.is_sure or peer not in self.keepers or answer.after != self._after.get(peer, ""):
            return
        for entry in answer.entries:
            self._merge(entry)
        if answer.entries:
            self._after[peer] = answer.entries[-1].name
            send(peer, AskNames(0, self._after[peer]))
            return
        self._heard[peer] = answer.is_sure
        others = len(self.keepers) - 1
        is_enough = sum(self._heard.values()) > len(self.keepers) - self.majority
        self.is_sure = is_enough or len(self._heard) == others

    def lose_patience(self) -> None:
        """Those who come back have had time for it."""
        others = len(self.keepers) - 1
        if len(self._heard) >= others - self._spared:
            self.is_sure = True

    def _merge(self, entry: NameEntry) -> None:
        own = self._entry(entry.name)
        newer = entry if entry.accepted > own.accepted else own
        merged = msgspec.structs.replace(newer, promised=max(entry.promised, own.promised))
        if merged != own:
            self._put(merged)
