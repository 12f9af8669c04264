"""What clients and brokers of the `gapless` protocol say to each other."""

from typing import TypeAlias, get_args

import msgspec

from gapless.events import Event, Events
from gapless.positions import TIMESTAMP_MAX
from gapless.protocols.gapless.messages import Ranges
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport, NameRecord
from gapless.protocols.parts.messages import Cuts
from gapless.protocols.parts.messages import Message as _Message

Place: TypeAlias = tuple[int, str, int]
"""Timestamp, publisher and number of an event: a position after it."""


class _Said(_Message, frozen=True):
    """All of it carries the client's attempt to have a session: what is of another does not count."""

    attempt: int


class SubscriptionProgress(_Message, frozen=True):
    """A subscription as its client holds it: what is fixed, and how far it got with each publisher."""

    subscription: str
    filter: str
    cuts: Cuts
    got: Cuts
    is_whole: bool
    """Whether the client was told that its cut is whole."""
    since: int = -1
    """If it still reads history: the position up to which it has got everything."""
    until: int = 0
    """If it reads nothing but history: the position at which it ends."""
    is_behind: bool = False
    """Whether it reads history because its client lay behind, together with others (see `Behind`)."""

    @property
    def is_live(self) -> bool:
        """Whether it is as any other for which nobody asked for history, or was so before its client lay behind."""
        return self.since < 0 or self.is_behind


class Attach(_Said, frozen=True):
    """A client begins or resumes its session. All that follows carries the same attempt number."""

    home: str
    """The life that held the session last (`name/life`), or empty."""
    brought: list[SubscriptionProgress]
    advertisements: dict[str, tuple[str, int]]
    """Filter and first number."""
    publications: list[Event]
    """What the client published and nobody confirmed."""
    first: int
    """The first number not confirmed yet."""
    unread: int = 0
    """What it was delivered and its application has not taken: it counts as the first deliveries of this attempt."""
    clock: int = 0
    """No stamp of what it was delivered is larger."""
    heard: int = 0
    """The last attempt that was answered by `Attached`, as far as the client knows."""
    silent_us: int = 0
    """For how long the client has heard nothing of the broker that held its session."""
    seen: Cuts = msgspec.field(default_factory=dict)
    """By publisher: the last number that it was delivered for subscriptions that are over."""


class Invite(_Said, frozen=True):
    """To a client without a session: name this life as your home, and attach. (So no session is ever begun that its
    client could not find again.)"""

    home: str


class Attached(_Said, frozen=True):
    """The broker holds the session. `fresh` subscriptions are new to it and get new cuts.

    `contacts` are whom to ask if it is lost, the broker itself first.
    """

    home: str
    fresh: list[str]
    contacts: list[str]
    lost: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Of what the client published and was told to be safe, nobody holds these numbers any more: more than f brokers
    are gone. From the first to the last of each range."""


class Redirect(_Said, frozen=True):
    """Your session is with that broker now."""

    broker: str


class NotYet(_Said, frozen=True):
    """I cannot tell yet who holds your session; ask again."""


class Gone(_Said, frozen=True):
    """The broker that held this session no longer does: look for its heir."""


class Expired(_Said, frozen=True):
    """You were away for too long: your subscriptions ended where you stopped."""


class ClientAdvertise(_Said, frozen=True):
    """The client may publish what matches the filter, from its number `first` on."""

    advertisement: str
    filter: str
    first: int


class ClientUnadvertise(_Said, frozen=True):
    advertisement: str


class ClientSubscribe(_Said, frozen=True):
    subscription: str
    filter: str
    since: int = -1
    """A position: first what came after it. `LATEST` is just before the newest position when the broker gets this."""
    until: int = 0
    """A position: nothing that came after it. `NEWEST` is the newest position when the broker gets this."""


class ClientUnsubscribe(_Said, frozen=True):
    subscription: str


class ClientPublish(_Said, frozen=True):
    events: Events


class ClientGot(_Said, frozen=True):
    """The client's application has taken every delivery up to this number of the attempt."""

    number: int


class ClientOpen(_Said, frozen=True):
    """The client wants to go on with a durable subscription, or begin one."""

    subscription: str
    name: str
    filter: str
    replace: bool = False
    """Whether it may have had another filter, or been shared by a group or not."""
    share: bool = False
    """Whether a group shares it: who has it is not ended, but asked for a part."""
    redeliver_us: int = 0
    """In a group: what is not confirmed for so long is given to another."""
    beyond: int = -1
    """In a group, of which the client is a member already: who has it in this generation, or an earlier one, does not
    answer."""


class ClientConfirm(_Said, frozen=True):
    """All up to a position is confirmed, and of what came after it these numbers of these publishers."""

    subscription: str
    name: str
    generation: int
    serial: int
    position: int
    got: Cuts
    latest: int
    """No stamp of these is larger."""
    is_leaving: bool = False
    """The client wants no more of it."""
    done: Ranges = msgspec.field(default_factory=dict)
    """In a group: what else is confirmed, beyond the position and those numbers."""
    lease_us: int = 0
    """In a group: for so long the client goes on to deal without being heard."""
    delivered: int = 0
    """No stamp of what was delivered is larger; in a group, of what is delivered before the next of these is held."""


class ClientHand(_Message, frozen=True):
    """To another client of the same group: pass this on."""

    attempt: int
    subscription: str
    name: str
    client: str
    """Who is meant, and where it is."""
    broker: str
    word: GroupReport | GroupDeal


class ClientNames(_Said, frozen=True):
    """Which durable subscriptions are there?"""

    request: int


class ClientMove(_Said, frozen=True):
    """Let a durable subscription go on after another position; below 0, end it."""

    request: str
    """Unique, and beginning with the name of the client."""
    name: str
    filter: str
    """That it has."""
    position: int
    after: Place | None = None
    """What came after the position and up to this event is left out as well."""


DELIVERED_AHEAD_US = 10_000_000
"""How far ahead of the newest stamp the bound on what is delivered goes, so that nothing has to wait for it."""
LEASE_US = 3_000_000
"""For so long, at least, who deals for a group goes on without being heard by the keepers of names."""
LEASE_MAX_US = 120_000_000
"""And for so long at most: who takes its place waits for as long."""
HOLDS_MAX = 1_000
"""Events that a member of a group brings when it joins, or that one message deals to it."""
NEWEST = -1
"""As the end of a history read: all that was confirmed before it began."""
LATEST = TIMESTAMP_MAX
"""As its beginning: the newest position, too."""
CLIENT_MESSAGES = (
    Attach, ClientAdvertise, ClientUnadvertise, ClientSubscribe, ClientUnsubscribe, ClientPublish, ClientGot,
    ClientOpen, ClientConfirm, ClientNames, ClientMove, ClientHand,
)  # fmt: skip
"""All that a broker takes from a client."""


class Delivery(_Said, frozen=True):
    """Events for some of the client's subscriptions, all for the same; `number` is that of the first."""

    number: int
    events: Events
    subscriptions: list[str]


class Cut(_Said, frozen=True):
    """The starting cut of a subscription for some publishers.

    If `is_whole`, none is on its way any more, and f + 1 brokers hold all of it.
    """

    subscription: str
    cuts: Cuts
    is_whole: bool = False
    began: int = 0
    """If it is whole: of publishers without a cut, what has a larger stamp is due; they came after the subscription."""


class Unsubscribed(_Said, frozen=True):
    """The subscription is over; the client got everything up to `last` of each publisher, or ends where it is."""

    subscription: str
    last: Cuts


class Reached(_Said, frozen=True):
    """A subscription that reads history has been sent all up to a position; without a name, all that lay behind have.

    What is `lost` of it nobody holds any more: numbers by publisher, with a position up to which they were admitted.
    If `is_live`, what follows is what is published.
    """

    subscription: str
    position: int
    is_live: bool
    lost: list[tuple[int, Ranges]]
    gap: tuple[int, int] | None = None
    """Two positions: nobody knows any more what was admitted between them."""


class Behind(_Said, frozen=True):
    """Nobody waits for the client any more: these subscriptions go on from a position, out of history."""

    position: int
    subscriptions: list[str]


class Parted(_Said, frozen=True):
    """Halves of the network had gone on without each other: of what was published between two positions, anything may
    be missing."""

    since: int
    until: int


Note: TypeAlias = Unsubscribed | Reached | Behind
"""What is told in its place among the deliveries."""


class Stable(_Said, frozen=True):
    """The advertisement is stable."""

    advertisement: str


class Safe(_Said, frozen=True):
    """Publications up to this number are held by f + 1 brokers."""

    seq: int


class NameOpened(_Said, frozen=True):
    """The durable subscription is the client's: it goes on after what the record says."""

    subscription: str
    record: NameRecord


class NameRefused(_Said, frozen=True):
    """The client cannot have the durable subscription."""

    subscription: str
    reason: str


class NameKept(_Said, frozen=True):
    """What the client confirmed is held by a majority of the keepers of names."""

    subscription: str
    serial: int


class NameLost(_Said, frozen=True):
    """The durable subscription is not the client's any more."""

    subscription: str
    reason: str


class NamesTold(_Said, frozen=True):
    """Some of the durable subscriptions that there are, and the last final position."""

    request: int
    records: list[NameRecord]
    position: int
    is_last: bool


class NameMoved(_Said, frozen=True):
    """It was moved, or ended; or a sentence says why not."""

    request: str
    reason: str


class NameHanded(_Message, frozen=True):
    """Another client of the same group says so."""

    attempt: int
    subscription: str
    client: str
    """Which one, and where it is."""
    broker: str
    word: GroupReport | GroupDeal


Answer: TypeAlias = (
    Invite | Attached | Redirect | NotYet | Gone | Expired | Delivery | Cut | Unsubscribed | Reached | Behind
    | Stable | Safe | NameOpened | NameRefused | NameKept | NameLost | NamesTold | NameMoved | NameHanded | Parted
)  # fmt: skip
"""All that a broker says to a client."""
ANSWERS = get_args(Answer)
