"""Tokens that wait to be compared. There is room for so many, and who sends many does not keep others out.

Comparing takes long on purpose, and only one token is compared at a time. So somebody who guesses could take all
places, and all the time. Nothing is known yet of those who wait but the host from which they come and the user that
they claim to be. Whoever shares neither with many others is hardly one who guesses.

- There is no room: of all, the new one included, the one has to go that shares its host and its user with the most.
  Of equals, it is the one that came last.
- Turns go by two rules in alternation: to the one that shares host and user with the fewest, and to the one that has
  waited longest. So who shares its host with many is served late, and served.
"""

from collections import Counter
from typing import Generic, NamedTuple, TypeVar

__all__ = ["TokenQueue"]

T = TypeVar("T")


class _Place(NamedTuple, Generic[T]):
    item: T
    host: str
    user: str


class TokenQueue(Generic[T]):
    """No more than `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: list[_Place[T]] = []
        """The longest waiting first."""
        self._hosts: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._by_age = False

    def __len__(self) -> int:
        return len(self._places)

    def add(self, item: T, host: str, user: str) -> T | None:
        """Add one; the one that has to go, if there is no room: perhaps this one."""
        self._places.append(_Place(item, host, user))
        self._hosts[host] += 1
        self._users[user] += 1
        if len(self._places) <= self._most:
            return None
        return self._take(max(reversed(range(len(self._places))), key=self._sharing))

    def next(self) -> T | None:
        """Whose turn it is; it waits no longer."""
        if not self._places:
            return None
        self._by_age = not self._by_age
        return self._take(0 if not self._by_age else min(range(len(self._places)), key=self._sharing))

    def _sharing(self, number: int) -> int:
        place = self._places[number]
        return self._hosts[place.host] + self._users[place.user]

    def _take(self, number: int) -> T:
        place = self._places.pop(number)
        for counts, key in ((self._hosts, place.host), (self._users, place.user)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
        return place.item
