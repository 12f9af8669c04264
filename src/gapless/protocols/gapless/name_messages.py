"""What brokers of the `gapless` protocol say to each other about durable subscriptions.

Any broker may ask the keepers of names, without a stream between them.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event
from gapless.positions import Position
from gapless.protocols.gapless.messages import Cuts, Ranges
from gapless.protocols.parts.messages import Message as _Message

Ballot: TypeAlias = tuple[int, str]
"""A number, and the life of the broker that uses it."""


class NameRecord(_Message, frozen=True):
    """A durable subscription, as its keepers know it."""

    name: str
    filter: str
    position: int
    """All up to here is confirmed."""
    got: Cuts
    """What is confirmed of what came after that: for each publisher, the last number."""
    generation: int
    """How often it was opened, moved or ended: who opened it earlier has nothing to say any more."""
    serial: int = 0
    """How often it was confirmed since: what was said earlier does not count when it comes late."""
    client: str = ""
    """Who listens; empty if nobody does."""
    broker: str = ""
    """Where that client was when it opened it; empty if its session has expired there."""
    is_over: bool = False
    """It was ended."""
    latest: int = 0
    """No stamp of what is confirmed beyond the position is larger."""
    is_shared: bool = False
    """It is shared by a group: the client that listens deals out to all who are in it."""
    redeliver_us: int = 0
    """In a group: what is not confirmed for so long is given to another."""
    done: Ranges = msgspec.field(default_factory=dict)
    """In a group: what else is confirmed, beyond the position and those numbers."""
    lease_us: int = 0
    """In a group: for so long the client that deals goes on without being heard by the keepers. As it is opened: for so
    long the one before may go on."""
    user: str = ""
    """Who opened it first, in a network with users: it counts as that user's, and so does the group that shares it."""
    delivered: int = 0
    """No stamp of what was delivered to a client is larger, unless one listens alone now. In a group, what has a larger
    stamp is not delivered before the keepers hold a larger bound."""
    after: tuple[int, str, int] | None = None
    """If it was moved to a position after an event: timestamp, publisher and number of that. Nothing up to it comes."""

    @property
    def begin(self) -> Position:
        """Where a subscription begins that goes on with it, beside the numbers that it leaves out."""
        position = Position.at(self.position)
        return position if self.after is None else max(position, Position.after(*self.after))


class NameEntry(_Message, frozen=True):
    """What one keeper holds of one name."""

    name: str
    promised: Ballot
    """It listens to no smaller ballot any more."""
    accepted: Ballot
    """The ballot of the record."""
    record: NameRecord | None
    user: str = ""
    """While there is no record: for whose client the ballot was promised."""


class AskName(_Message, frozen=True):
    """To a keeper: listen to no smaller ballot, and tell what you hold."""

    request: int
    name: str
    ballot: Ballot
    user: str = ""
    """Whose client wants to change the record, in a network with users."""


class KeepName(_Message, frozen=True):
    """To a keeper: hold this, unless you listen to a larger ballot only."""

    request: int
    ballot: Ballot
    record: NameRecord


class NameAnswer(_Message, frozen=True):
    """What a keeper holds after an `AskName` or a `KeepName` of that ballot, which it did if it promised no larger."""

    request: int
    ballot: Ballot
    is_kept: bool
    """The answer to a `KeepName`."""
    entry: NameEntry


class AskNames(_Message, frozen=True):
    """To a keeper: which names do you hold, after this one?"""

    request: int
    after: str


class NamesAnswer(_Message, frozen=True):
    """Some of them, by name; if there are none, that was all."""

    request: int
    after: str
    is_sure: bool
    """Whether the keeper knows that it has lost nothing."""
    entries: list[NameEntry]


class NameTaken(_Message, frozen=True):
    """To the broker of a client that listened: somebody else opened the durable subscription, or moved or ended it."""

    name: str
    generation: int
    client: str
    reason: str


class GroupReport(_Message, frozen=True):
    """From a member of a group to the one that deals: what it has, and how far it is done with it."""

    generation: int
    line: str
    """Which joining of that member."""
    received: int
    """It has all that it was dealt up to this number."""
    confirmed: int
    """It is done with all up to this one."""
    holds: list[tuple[str, int, int]] | None = None
    """When it joins: what it got from an earlier dealer and has not been told to be confirmed, by publisher, number and
    stamp. These count as dealt already, as numbers 1, 2, 3…"""
    latest: int = 0
    """No stamp of what it was ever dealt is larger."""
    refused: list[int] = msgspec.field(default_factory=list)
    """It has heard that what it was dealt under these numbers is another's."""
    is_leaving: bool = False
    number: int = 0
    """Which report of this line."""


class GroupDeal(_Message, frozen=True):
    """From the one that deals to a member of the group."""

    generation: int
    line: str
    after: int
    """What was dealt since this number is here; each line has numbers of its own."""
    upto: int
    items: list[tuple[int, Event, bool]]
    """By number; and whether it may have been dealt before, to whomever. What is not here was taken back."""
    kept: int
    """All that the member was done with up to this number is confirmed, but for what is another's."""
    refused: list[int]
    """What was dealt to it under these numbers is another's by now."""
    is_over: bool = False
    """The line is not known, or is no more."""
    since: int = 0
    """The last report that had been heard when the first of these was dealt."""


class HandName(_Message, frozen=True):
    """To the broker of a client in a group: pass this on to it."""

    name: str
    client: str
    """Who says so, and where it is."""
    broker: str
    to: str
    word: GroupReport | GroupDeal


NameMessage: TypeAlias = AskName | KeepName | NameAnswer | AskNames | NamesAnswer | NameTaken | HandName

NAME_MESSAGES = (AskName, KeepName, NameAnswer, AskNames, NamesAnswer, NameTaken, HandName)
"""All of it that a broker says to another; the rest travels in these, or is said to clients."""
