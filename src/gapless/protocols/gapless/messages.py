"""What brokers of the `gapless` protocol say to each other.

Everything but requests for history travels in `Frame`s of a `Channel`. `Tree` messages belong to one installation of
one tree link (its `tag`); all others are addressed to the broker as such.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event, Events
from gapless.protocols.gapless.epochs import Epoch
from gapless.protocols.gapless.lives import Home, Status
from gapless.protocols.parts.messages import Cuts as Cuts
from gapless.protocols.parts.messages import Message as _Message

Ranges: TypeAlias = dict[str, list[tuple[int, int]]]
"""For each publisher, numbers of its events: ascending, apart from each other, from the first to the last of each."""


# ---- channel ----------------------------------------------------------------------------------------------


class Frame(_Message, frozen=True):
    """One message of the reliable stream between two lives of two brokers."""

    life: int
    to_life: int
    seq: int
    ack: int
    clock: int
    """Of the sender: no stamp that it knows of is larger."""
    body: "Body"


class Ack(_Message, frozen=True):
    """Everything up to `ack` has arrived (sent alone only when no frame has carried it for long)."""

    life: int
    to_life: int
    ack: int


class Resume(_Message, frozen=True):
    """After a fresh connection: who I am, whom I believe you to be, how far I got with you; and how far did you?"""

    life: int
    to_life: int
    ack: int
    answer: bool


class Fenced(_Message, frozen=True):
    """You were excluded: nobody listens to this life of yours any more."""

    life: int
    """Of the sender."""
    status: dict[str, Status]
    others: dict[str, Status] = msgspec.field(default_factory=dict)
    """All that the sender knows of who lives. Those with whom you have gone on may be out, too, and those without whom
    you have gone on may live."""


# ---- along the tree ---------------------------------------------------------------------------------------


class Publication(_Message, frozen=True):
    """Events on their way, in order."""

    events: Events


class AddAdvertisement(_Message, frozen=True):
    """A publisher may publish what matches the filter, from number `first` on. Answered by `AdvertisementStable`."""

    advertisement: str
    publisher: str
    filter: str
    first: int
    number: int = 0
    """How the sender counts it: one that is taken back may come again under its name."""


class AdvertisementStable(_Message, frozen=True):
    """Whoever lies behind the sender has passed all matching subscriptions on to the publisher."""

    advertisement: str
    number: int = 0
    """As it was told; 0 if the sender knows the advertisement from a hand-over."""


class RemoveAdvertisement(_Message, frozen=True):
    """The publisher will publish nothing more under this advertisement."""

    advertisement: str
    was_lost: bool = False
    """Whether it was not taken back, but lost with its publisher's session: that may be found again."""


class AddSubscription(_Message, frozen=True):
    """Someone behind the sender subscribes; `cuts` is what is fixed already on the sender's side.

    If it takes the place of another one that ends, it inherits the cuts which that one has further on.
    """

    subscription: str
    filter: str
    cuts: Cuts
    inherits: str = ""


class RemoveSubscription(_Message, frozen=True):
    """The subscription no longer needs events from the receiver. If `answer`, say when it is gone."""

    subscription: str
    answer: bool = False


class SubscriptionGone(_Message, frozen=True):
    """The subscription is removed: no marker of it follows."""

    subscription: str


class Marker(_Message, frozen=True):
    """The starting cut of the subscription for some publishers: one message, one consistent cut."""

    subscription: str
    cuts: Cuts


class Interval(_Message, frozen=True):
    """What was admitted between two final positions: by journal, the numbers of each publisher."""

    since: int
    until: int
    admitted: dict[str, Ranges]


NOBODY = 1 << 62
"""As the lowest position of all durable subscriptions: there are none."""


class Wave(_Message, frozen=True):
    """From the root to all: a consistent cut of the network, and a position."""

    number: int
    """A stamp. Who has seen the wave stamps nothing with it, or with less, any more."""
    final: int
    """All events up to this position are admitted and held: there will be no other."""
    reached: int
    """All events up to this position have reached everyone."""
    done: int
    """What was processed before this wave came by has reached everyone."""
    interval: Interval | None = None
    """What was admitted up to `final` and after the final position before it, if the root knows."""
    dropped: int = 0
    """Somebody may have dropped from its history what was admitted up to this position."""
    named: int = 0
    """No durable subscription wants anything up to this position any more, as far as a majority of the keepers
    knows."""


class Echo(_Message, frozen=True):
    """From the leaves to the root: all below have seen the wave, and their clients have taken what came before.

    `busy` if any of them retains events, `pressed` if so many that its publishers may soon have to wait.
    """

    number: int
    busy: bool
    pressed: bool
    final: int = 0
    """The last final position that anyone below knows of; -1 if all have lost their memory since."""
    admitted: dict[str, Ranges] = msgspec.field(default_factory=dict)
    """By journal below: what was admitted after the final position that the wave told."""
    dropped: int = 0
    """Somebody below may have dropped from its history what was admitted up to this position."""
    named: int = NOBODY
    """The lowest position of a durable subscription that a keeper of names below knows of."""
    keepers: int = 0
    """How many keepers there are below."""


class Hurry(_Message, frozen=True):
    """To the root: someone waits for a final position."""

    again: bool = False
    """A hand-over is complete: the wave that is under way may not have got through it."""


TreeBody: TypeAlias = (
    Publication | AddAdvertisement | AdvertisementStable | RemoveAdvertisement
    | AddSubscription | RemoveSubscription | SubscriptionGone | Marker | Wave | Echo | Hurry
)  # fmt: skip


class Tree(_Message, frozen=True):
    """A message along one installation of a tree link."""

    tag: int
    body: TreeBody


# ---- membership and hand-over -----------------------------------------------------------------------------


class Membership(_Message, frozen=True):
    """What the sender knows of who lives: see `membership`."""

    status: dict[str, Status]
    forgotten: dict[str, int] = msgspec.field(default_factory=dict)
    """By broker: the last of its lives for which nobody has to wait, as an operator said."""
    parted: tuple[int, int] = (0, 0)
    """Between which positions halves of the network had last gone on without each other: see `parting`."""


class Accuse(_Message, frozen=True):
    """My failure detector does (or no longer does) suspect the broker."""

    broker: str
    life: int
    guilty: bool


class SessionRecord(_Message, frozen=True):
    """One client's session as its broker's backups know it."""

    client: str
    epoch: Epoch
    version: int
    """Grows with each change of the session at the same broker."""
    subscriptions: dict[str, str]
    cuts: dict[str, Cuts]
    """By subscription."""
    advertisements: dict[str, tuple[str, int, bool]]
    """Filter, first number, and whether it is stable."""
    admitted: int
    """The last publication of the client that its broker admitted."""
    awaited: dict[str, list[str] | None]
    """By subscription: the publishers whose cuts are still on their way. None if the broker could not know them all."""
    place: str = ""
    """The broker at which the client began the session: when that one returns, it gets the session back."""
    behind: int = -1
    """If the client lies behind: a position up to which it has got everything. What follows is in the history."""
    began: dict[str, int] = msgspec.field(default_factory=dict)
    """By subscription: a stamp. What its broker had heard of before it has no larger one."""
    anew: dict[str, int] = msgspec.field(default_factory=dict)
    """By subscription that began afresh: in which attempt its client was told so, if it may not have heard it."""
    lost: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """What the client published, and nobody holds any more, if it may not have heard that: from the first to the last
    number of each range."""
    revived: list[str] = msgspec.field(default_factory=list)
    """Subscriptions that were lost with more than f brokers, and read what they missed: the cuts that count are
    those that their client knows."""


class Admission(_Message, frozen=True):
    """A publication held by backups: the event, and how far its broker had come with each publisher by then."""

    number: int
    """In the journal of the broker."""
    event: Event
    after: Cuts
    """What is new of that since the admission before; all of it, once it is expanded (`handover.expand`)."""
    is_inherited: bool
    """Another broker had admitted it; it does not come after what stands before it in this journal."""
    whole: Cuts | None = None
    """All that came before it, if that is known apart from the others."""


PUT_TOGETHER = -1
"""In the place of the number of a journal's last entry: the copy is what a hand-over made of all copies."""


class Estate(_Message, frozen=True):
    """What the backups of one life of a broker hold of its clients."""

    broker: str
    life: int
    """Or, for what a broker gets back that has returned: the tag of the hand-over, negative."""
    records: dict[str, SessionRecord]
    before: Cuts
    """What precedes all admissions."""
    admissions: list[Admission]
    number: int = 0
    """Of the last entry of the journal that this copy knows; `PUT_TOGETHER` if that was in a hand-over."""
    is_found: bool = False
    """It was found on a disk: the life may be over since long."""


class LogEntry(_Message, frozen=True):
    """An event that a broker processed; `entered` if it came from the broker's own side of the region.

    What came out of a merged log has no place of its own in this one; `after` tells what it comes after.
    """

    event: Event
    entered: bool
    after: Cuts | None
    is_noted: bool = False
    """Whether it is in the journal of the broker."""


class SideSubscription(_Message, frozen=True):
    """A subscription on the sender's side, with the cuts it has there; `client` if the sender holds its session."""

    subscription: str
    filter: str
    cuts: Cuts
    client: str
    ended: str = ""
    """The name of a subscription that has ended and goes on under another, until those it represents took its place."""
    log_from: int = 0
    """What stands before this in the sender's log passed the sender before the subscription did."""


class SideAdvertisement(_Message, frozen=True):
    """An advertisement on the sender's side; `awaited` if its publisher still waits for the region's answer."""

    advertisement: str
    publisher: str
    filter: str
    first: int
    awaited: bool


class Sync(_Message, frozen=True):
    """All that one member of a region contributes to its hand-over."""

    tag: int
    core: list[str]
    status: dict[str, Status]
    subscriptions: list[SideSubscription]
    advertisements: list[SideAdvertisement]
    known_cuts: dict[str, Cuts]
    """For subscriptions from inside the region: the cuts that they have at the sender."""
    log: list[LogEntry]
    passed: Cuts
    wave: int
    estates: list[Estate]
    owned: dict[str, Epoch]
    """The clients whose sessions the sender holds, with the epoch of each."""
    heirs: dict[Home, Home]
    """Which life took over the clients of which."""
    homes: dict[str, Home]
    """Clients that were inherited by a life that is still there."""
    inside: Cuts = msgspec.field(default_factory=dict)
    """By publisher that advertises something inside the region: up to which number all has reached everyone."""
    done: Cuts = msgspec.field(default_factory=dict)
    """The same, by publisher of what is in the log."""
    gone_round: dict[Home, int] = msgspec.field(default_factory=dict)
    """The lives without which a hand-over was completed, and whose journal nobody had: the position that everything had
    reached by then."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """By publisher that may not have been told: what is lost of what it published."""
    unreached: Cuts = msgspec.field(default_factory=dict)
    """By publisher: the last number that is known to be admitted somewhere, and may not have reached everyone."""
    passed_over: list[Home] = msgspec.field(default_factory=list)
    """The same lives, whoever has taken over their clients since."""
    has_memory: bool = True
    """Whether it has what it held when it was there last: it is in its first life, or has come back with its disk."""
    filters: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the subscriptions with known cuts, if their sessions may be lost: more than f are in the core."""
    gone: list[str] = msgspec.field(default_factory=list)
    """Publishers of which hand-overs found that events may be lost: who comes back does not know it."""
    final: int = 0
    """The last final position that it has heard of."""


class Completed(_Message, frozen=True):
    """To the members of a region: I have completed this hand-over."""

    tag: int


class PutOff(_Message, frozen=True):
    """A client knows of something that nobody knows, and waits (`clients.unaccounted`). All brokers hear of it."""

    client: str
    first: int
    """It brings what it published from this number on."""


class Resolved(_Message, frozen=True):
    """The sender is the heir of that life. Once its own backups hold the estate (`secured`), others may forget it."""

    broker: str
    life: int
    secured: bool


# ---- backups ----------------------------------------------------------------------------------------------


class Backup(_Message, frozen=True):
    """One entry of a broker's journal: sessions that changed, or publications to be admitted."""

    number: int
    """Of the entry, or of the last of its publications: each counts as one."""
    forget: int
    """Admissions up to this number have reached everyone."""
    after: Cuts
    """What the sender has processed since the entry before."""
    records: list[SessionRecord]
    events: Events
    original: Cuts | None
    """For what another broker had admitted: all that came before it there."""
    gone: str = ""
    """A client whose session is over."""


class BackupAll(_Message, frozen=True):
    """The whole journal, for a backup that starts now, or that has gathered too much."""

    number: int
    records: list[SessionRecord]
    admissions: list[Admission]
    before: Cuts
    """What the sender had processed before all these, but for what has reached everyone."""


class BackupEnd(_Message, frozen=True):
    """The journal is kept elsewhere now."""


class BackupHeld(_Message, frozen=True):
    """The backup holds everything up to this number."""

    number: int


Body: TypeAlias = (
    Tree | Membership | Accuse | Sync | Completed | Resolved | PutOff | Backup | BackupAll | BackupEnd | BackupHeld
)  # fmt: skip


# ---- history: any broker may ask any other, without a stream between them ---------------------------------
#
# `life` is that of the broker that asks, so that no answer to an earlier life is taken for one to this. The smallest
# story: b7 asks everyone for a piece, is told that it is out, begins anew, and asks b9 for another. It counts from 1
# again, and b8 answers what was asked with the same number: that there is nothing.


class FetchIntervals(_Message, frozen=True):
    """Which intervals of history do you know after the first position, up to the second, or up to your last (0)?"""

    life: int
    request: int
    since: int
    until: int


class FetchedIntervals(_Message, frozen=True):
    """The last of them, one after the other without a gap."""

    life: int
    request: int
    intervals: list[Interval]


class Fetch(_Message, frozen=True):
    """What stands in a journal between two final positions, and matches the filter?"""

    life: int
    request: int
    journal: str
    since: int
    until: int
    filter: str


class Fetching(_Message, frozen=True):
    """It has to be read from a disk, which may take long."""

    life: int
    request: int


class Fetched(_Message, frozen=True):
    """A part of it, by stamp: all that matches up to `upto`."""

    life: int
    request: int
    held: Ranges
    """What the sender holds of all that was asked for, whether it matches or not."""
    passed: Ranges
    """What of it lies up to `upto`."""
    upto: int
    events: list[Event]


HistoryMessage: TypeAlias = FetchIntervals | FetchedIntervals | Fetch | Fetching | Fetched


BROKER_MESSAGES = (
    Frame, Ack, Resume, Fenced, FetchIntervals, FetchedIntervals, Fetch, Fetching, Fetched,
)  # fmt: skip
"""All that a broker says to another, but for what is said about names; the rest travels in frames."""
