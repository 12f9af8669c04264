"""Which durable subscriptions there are: a majority of the keepers tells all that it holds."""

from collections.abc import Callable

from gapless.protocols.gapless.name_messages import AskNames, NameEntry, NameRecord, NamesAnswer

__all__ = ["Listing"]


class Listing:
    """One question of one client."""

    def __init__(
        self,
        number: int,
        keepers: list[str],
        done: Callable[[list[NameRecord]], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self.number = number
        self.is_wanted = is_wanted
        self._keepers = keepers
        self._done = done
        self._after: dict[str, str] = {}
        self._told: dict[str, None] = {}
        self._found: dict[str, NameEntry] = {}

    def ask(self, send: Callable[[str, AskNames], None]) -> None:
        """Ask those who have not told all."""
        for keeper in self._keepers:
            if keeper not in self._told:
                send(keeper, AskNames(self.number, self._after.get(keeper, "")))

    def hear(self, peer: str, answer: NamesAnswer, send: Callable[[str, AskNames], None]) -> bool:
        """A keeper tells some names, or that there are no more; return whether the question is answered."""
        if answer.after != self._after.get(peer, "") or peer not in self._keepers or peer in self._told:
            return False
        for entry in answer.entries:
            known = self._found.get(entry.name)
            if known is None or entry.accepted > known.accepted:
                self._found[entry.name] = entry
        if answer.entries:
            self._after[peer] = answer.entries[-1].name
            send(peer, AskNames(self.number, self._after[peer]))
            return False
        if not answer.is_sure:
            return False
        self._told[peer] = None
        if len(self._told) <= len(self._keepers) // 2:
            return False
        records = [self._found[name].record for name in sorted(self._found)]
        self._done([record for record in records if record is not None and not record.is_over])
        return True
