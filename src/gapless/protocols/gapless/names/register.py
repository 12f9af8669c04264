"""What one keeper of names holds, and when it may say so.

The records of durable subscriptions are kept by the 2f + 1 brokers in the middle of the tree, the root and those
nearest to it (all, if there are fewer). A record is changed only if a majority of them agrees (`proposals`). So what
was agreed survives f of them, and nobody has to know who lives.

A keeper that has started again may have forgotten what it had agreed to: it comes without memory, or with an old disk.
It agrees to nothing before it has asked the others, as soon as it is there, and has heard

- enough keepers who know that they have lost nothing: so many that one of them was in each majority that this one was
  in; or
- all of them: then nobody knows more; or
- after `return_ms`, all but f of them, or all but f - 1 if it comes without memory: more do not come back.

There is room for `NAMES_MAX` names, and in a network with users for so many of each user as its limit says. Names that
were ended do not count. A keeper holds their records all the same: a keeper that has missed the end of a name would
bring the name back, were it the only one that knows of it. There is room for `ENDED_MAX` of those; beyond that, it
forgets the name that ended first, of the user who has ended most. So nobody can make it forget those of others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.name_messages import (
    AskName,
    AskNames,
    Ballot,
    KeepName,
    NameAnswer,
    NameEntry,
    NameRecord,
    NamesAnswer,
)

__all__ = ["ENDED_MAX", "FULL", "NAMES_MAX", "NAME_KEYS", "NO_MORE", "Register", "keepers_of"]

NAME_KEYS = "name/"
NOTHING: Ballot = (0, "")
FULL: Ballot = (1 << 62, "full")
"""What is promised of a name for which there is no room."""
NO_MORE: Ballot = (1 << 62, "no more for this user")
"""What is promised of a name to a user who has as many as it may have."""
NAMES_MAX = 10_000
ENDED_MAX = 10_000
PAGE = 100
"""Names that are told in one message."""
_decode = msgspec.msgpack.Decoder(NameEntry).decode


def keepers_of(root: str, nearest: Iterable[str], f: int) -> list[str]:
    """The keepers of names."""
    return [root, *nearest][: 2 * f + 1]


class Register:
    """One keeper, through all lives of one start of its broker."""

    def __init__(
        self,
        name: str,
        keepers: list[str],
        f: int,
        disk: Disk,
        entries: Mapping[str, bytes] | None,
        *,
        is_first: bool,
        names_max: Callable[[str], int] = lambda user: 0,
    ) -> None:
        """`entries` is what the disk holds, if there is one; `is_first` if the broker never lived before; `names_max`
        tells how many names a user may have, or 0."""
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
        self._names_max = names_max
        self._counts: Counter[str] = Counter()
        """By user: the names that have not ended."""
        self._ended: dict[str, dict[str, None]] = {}
        """By user: the names that have, in order."""
        self._ended_count = 0
        for entry in sorted(found, key=lambda entry: entry.accepted):
            self._count(entry)
        self._spared = f if entries else f - 1
        """How many others need not be heard, once those who come back have had time for it."""
        self._heard: dict[str, bool] = {}
        """Of those who have told all they hold, whether they are sure."""
        self._after: dict[str, str] = {}
        self._asked: dict[str, dict[str, AskName | KeepName]] = {}
        """By name and broker: who wants to change a record since it was changed last."""

    @property
    def is_keeper(self) -> bool:
        """Whether this broker is one of them."""
        return self.name in self.keepers

    # ---- what others want ---------------------------------------------------------------------------------

    def promise(self, name: str, ballot: Ballot, user: str = "") -> NameEntry:
        """Listen to no smaller ballot from now on, unless a larger one was promised."""
        entry = self._entry(name)
        if name not in self.entries or _has_ended(entry):
            if len(self.entries) - self._ended_count >= NAMES_MAX:
                return NameEntry(name, FULL, NOTHING, None)
            most = self._names_max(user) if user else 0
            if most and self._counts[user] >= most:
                return NameEntry(name, NO_MORE, NOTHING, None)
        if ballot > entry.promised:
            whose = user if name not in self.entries else entry.user
            entry = self._put(msgspec.structs.replace(entry, promised=ballot, user=whose))
        return entry

    def accept(self, ballot: Ballot, record: NameRecord) -> NameEntry:
        """Hold the record, unless a larger ballot was promised."""
        entry = self._entry(record.name)
        if ballot >= entry.promised:
            entry = self._put(NameEntry(record.name, ballot, ballot, record))
        return entry

    def answer(self, peer: str, message: AskName | KeepName) -> list[tuple[str, NameAnswer]]:
        """The answers to a message. If it made this keeper hold something, others are answered, too.

        They had to give way to it, and can go on. The smallest story of what happened without: three brokers far away
        from the keepers want a name. Each asks, is told of another's larger ballot, waits for a while, and asks again
        with a larger one; so each hinders the others in turn, for many seconds.
        """
        if isinstance(message, AskName):
            entry = self.promise(message.name, message.ballot, message.user)
        else:
            entry = self.accept(message.ballot, message.record)
        asked: dict[str, AskName | KeepName] = {peer: message}
        if isinstance(message, KeepName) and entry.accepted == message.ballot:
            asked = self._asked.get(entry.name, {}) | asked
            self._asked[entry.name] = {peer: message}  # it may be that it gives way to the next
        elif entry.promised not in (FULL, NO_MORE):
            known = self._asked.setdefault(entry.name, {})
            known[peer] = max(known.get(peer, message), message, key=lambda each: each.ballot)
        return [
            (asker, NameAnswer(each.request, each.ballot, isinstance(each, KeepName), entry))
            for asker, each in asked.items()
        ]

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
        known = self.entries.get(entry.name)
        if known is not None:
            self._discount(known)
        self.entries[entry.name] = entry
        self._count(entry)
        self._disk.put(f"{NAME_KEYS}{entry.name}", entry)
        if self._ended_count > ENDED_MAX:
            self._forget_ended()
        if self._disk.is_there:
            self.written = self._disk.next
        return entry

    def _count(self, entry: NameEntry) -> None:
        if _has_ended(entry):
            self._ended.setdefault(_user_of(entry), {})[entry.name] = None
            self._ended_count += 1
        else:
            self._counts[_user_of(entry)] += 1

    def _discount(self, entry: NameEntry) -> None:
        user = _user_of(entry)
        if _has_ended(entry):
            del self._ended[user][entry.name]
            self._ended_count -= 1
            if not self._ended[user]:
                del self._ended[user]
        else:
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]

    def _forget_ended(self) -> None:
        names = max(self._ended.values(), key=len)
        for name in names:
            if self.entries[name].promised == self.entries[name].accepted:  # nobody is about to open it again
                self._discount(self.entries.pop(name))
                self._asked.pop(name, None)
                self._disk.delete(f"{NAME_KEYS}{name}")
                return

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


def _has_ended(entry: NameEntry) -> bool:
    return entry.record is not None and entry.record.is_over


def _user_of(entry: NameEntry) -> str:
    return entry.user if entry.record is None else entry.record.user
