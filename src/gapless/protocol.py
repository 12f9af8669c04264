"""The interface between protocols and the runtimes that drive them.

A protocol supplies two kinds of node, a broker and a client. Both are pure state machines: `step(input, now)`
takes one input and returns the effects it causes, in order. A node reads no clock, draws no random number and
touches no socket; time is the integer number of microseconds that the runtime passes in. It counts from the
start of a simulated run, or from 1970, and never runs backwards.

What a runtime promises a node:

- Messages between two nodes arrive in the order sent, each at most once, while their connection lasts. A
  connection that is lost takes an unknown suffix of the messages in flight with it; `Connected` is then given to
  both ends once a fresh connection exists.
- `Suspected(peer)` is the failure detector's opinion and may be wrong; `Trusted(peer)` takes it back.
- The tree may be rearranged: `Unlinked` is given to both ends of a link that goes, `Linked` to both ends of one that
  comes. What is in flight between the two ends at that moment is lost. Two brokers that are no longer neighbours can
  still send to each other, as any two can.
- `Place.incarnation` grows each time a broker starts without the memory of its earlier life.
- What a disk held when its broker stopped, it holds when the broker starts again: all that was said to be `Persisted`,
  and of the rest what came first, `Keep` by `Keep`. A disk may also be lost, or an old one be put in its place.
- Each effect is carried out before the next input is given to the same node.

A protocol registers itself by being a module (or package) of `gapless.protocols` with a `PROTOCOL` attribute
(`gapless.registry`).
"""

from collections.abc import Callable, Mapping, Sequence, Set
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from gapless.disk import Change, DiskContents, HistoryRow
from gapless.errors import ProtocolError
from gapless.events import Attributes, Event
from gapless.names import Confirm, Confirmation, Confirming, ListNames, MoveName, NameChanged, NamesListed, Opened
from gapless.overlay import Overlay

__all__ = [
    "GUARANTEE_NAMES", "Activated", "Advertise", "Advertised", "BrokerNode", "BrokerPlace", "CaughtUp", "ClientNode",
    "ClientPlace", "Confirmed", "Connected", "Consumed", "CutFixed", "CutsVoided", "Deliver", "DeliverMany", "Demand",
    "Effect", "EndSession", "Ended", "Expel", "Guarantee", "HistoryRead", "Input", "Judging", "Keep", "Linked", "Node",
    "Persisted", "ProtocolSpec", "Publish", "PublishMany", "Published", "PublishedMany", "ReadHistory", "Ready",
    "Received", "Rejected", "Send", "SetTimer", "Skipped", "Start", "Subscribe", "Suspected", "TimerFired", "Trusted",
    "Unadvertise", "Unlinked", "Unsubscribe", "any_overlay", "check_overlay", "convert_options",
]  # fmt: skip

Guarantee: TypeAlias = Literal["gcd", "gfd", "topic-causal", "best-effort"]
GUARANTEE_NAMES: Mapping[Guarantee, str] = {
    "gcd": "gapless causal",
    "gfd": "gapless FIFO",
    "topic-causal": "causal per topic",
    "best-effort": "best effort",
}
"""What people read; the short words are for files and programs."""
Ready: TypeAlias = Literal["whole", "first"]
"""When a subscription is active: with a cut for every publisher that may match it, so that nothing published from then
on is left out; or with its first cut, as the papers define it."""
Message: TypeAlias = Any  # each protocol has its own frozen msgspec structs


# ---- inputs -----------------------------------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True):
    """The first input a node gets, and the first after each restart without memory."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message from a peer."""

    peer: str
    message: Message


class Connected(msgspec.Struct, frozen=True):
    """A fresh connection to the peer; messages sent before it may have been lost."""

    peer: str


class Suspected(msgspec.Struct, frozen=True):
    """The failure detector believes that the peer is dead."""

    peer: str


class Trusted(msgspec.Struct, frozen=True):
    """The failure detector no longer believes that the peer is dead."""

    peer: str


class Linked(msgspec.Struct, frozen=True):
    """From now on the tree has a link to the peer. Given to protocols that cope with `relink` only."""

    peer: str


class Unlinked(msgspec.Struct, frozen=True):
    """From now on the tree has no link to the peer any more. Given to protocols that cope with `relink` only."""

    peer: str


class TimerFired(msgspec.Struct, frozen=True):
    """A timer set by `SetTimer` ran out."""

    key: str


class Advertise(msgspec.Struct, frozen=True):
    """A client's call: I may publish events that match `filter`."""

    advertisement: str
    filter: str


class Unadvertise(msgspec.Struct, frozen=True):
    """A client's call: what I publish from now on no longer relies on this advertisement."""

    advertisement: str


class Subscribe(msgspec.Struct, frozen=True):
    """A client's call: deliver what matches `filter`. Protocols that know but one meaning of `ready` ignore it."""

    subscription: str
    filter: str
    ready: Ready = "whole"
    since: int = -1
    """A position: everything that came after it is delivered, too; for protocols that keep history
    (`keeps_history`). Below 0: what is published from now on."""
    until: int = 0
    """With `since`, a position: nothing that came after it is delivered, and the subscription ends there. Below 0: what
    was admitted by now. 0: it does not end."""
    name: str = ""
    """If it is a named subscription: its name in the network. It goes on after what was confirmed; for protocols that
    keep names (`keeps_names`)."""
    confirm: Confirmation = "taken"
    replace: bool = False
    """Whether a named subscription may have had another filter before."""


class Unsubscribe(msgspec.Struct, frozen=True):
    """A client's call: end the subscription with an exact ending cut."""

    subscription: str


class Publish(msgspec.Struct, frozen=True, gc=False):
    """A client's call. The client node numbers the event and answers with `Published` or `Rejected`."""

    attributes: Attributes
    payload: bytes = b""


class PublishMany(msgspec.Struct, frozen=True, gc=False):
    """Several publications in order, answered one by one or together (`PublishedMany`); for protocols that take them
    (`takes_many`)."""

    publications: Sequence[Publish]


class Consumed(msgspec.Struct, frozen=True):
    """The application has taken the first `count` of all that was delivered to this client; for protocols that pace
    themselves by it (`paces`)."""

    count: int


class EndSession(msgspec.Struct, frozen=True):
    """An operator's call to a broker: end the session of this client, whether it is there or away; for protocols that
    know sessions (`ends_sessions`)."""

    client: str


class Persisted(msgspec.Struct, frozen=True):
    """The disk has what was told by `Keep` up to this number, and will have it whatever happens to the machine."""

    number: int


class ReadHistory(msgspec.Struct, frozen=True):
    """An effect. Read those pieces of an origin's history that reach beyond `since` and begin no later than `until`;
    `HistoryRead` follows. Only from a broker whose place has a disk."""

    request: int
    origin: str
    since: int
    until: int


class HistoryRead(msgspec.Struct, frozen=True):
    """What the disk holds of what was asked for; what cannot be read is left out."""

    asked: ReadHistory
    rows: Sequence[HistoryRow]


Input: TypeAlias = (
    Start | Received | Connected | Suspected | Trusted | Linked | Unlinked | TimerFired
    | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish | PublishMany | Consumed | EndSession | Persisted
    | HistoryRead | Confirm | ListNames | MoveName
)  # fmt: skip


# ---- effects ----------------------------------------------------------------------------------------------


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message to a peer; the runtime opens a connection where there is none."""

    peer: str
    message: Message


class SetTimer(msgspec.Struct, frozen=True):
    """Give `TimerFired(key)` after `delay_us`; replaces a running timer of the same key."""

    key: str
    delay_us: int


class Expel(msgspec.Struct, frozen=True):
    """Send a client away, with a sentence: it said what no client may say."""

    client: str
    reason: str


class Keep(msgspec.Struct, frozen=True):
    """Put this on the disk, as a whole, after all with smaller numbers; `Persisted` follows. Only from a broker whose
    place has a disk."""

    number: int
    """One more than that of the last one, of this node."""
    changes: Sequence[Change]


class Published(msgspec.Struct, frozen=True, gc=False):
    """A client node accepted and numbered an event."""

    event: Event


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A client node hands an event to the application, for one subscription."""

    event: Event
    subscription: str


class PublishedMany(msgspec.Struct, frozen=True, gc=False):
    """The same as `Published` for each of these events, in order; in answer to `PublishMany`."""

    events: list[Event]


class DeliverMany(msgspec.Struct, frozen=True, gc=False):
    """The same as `Deliver` for each of these events, in order."""

    events: list[Event]
    subscription: str


class CutFixed(msgspec.Struct, frozen=True):
    """The subscription gets every matching event of the publisher from `from_seq` on."""

    subscription: str
    publisher: str
    from_seq: int


class CutsVoided(msgspec.Struct, frozen=True):
    """The broker was lost before the cuts were safe. Nothing was delivered yet; later cuts follow."""

    subscription: str


class Skipped(msgspec.Struct, frozen=True):
    """A subscription that reads history will not get these numbers of these publishers, for nobody holds them any more.
    (They may not all have matched.)"""

    subscription: str
    lost: dict[str, list[tuple[int, int]]]
    gap: tuple[int, int] | None = None
    """Two positions between which it is not even known what there was. If the first is 0, the second is the earliest
    position from which on there is anything."""


class CaughtUp(msgspec.Struct, frozen=True):
    """A subscription that reads history has got everything up to a position; if `is_live`, it reads history no more."""

    subscription: str
    position: int
    is_live: bool


class Activated(msgspec.Struct, frozen=True):
    """The subscription holds its starting cut, the whole one or its first part: `subscribe()` may return."""

    subscription: str


class Ended(msgspec.Struct, frozen=True):
    """The subscription is over: it got everything up to `last_seq` of each publisher, and nothing after."""

    subscription: str
    last_seq: dict[str, int]
    is_complete: bool = False
    """It read history up to a position, and got all of it."""
    reason: str = ""
    """Why a named subscription is over, if its client did not end it."""


class Advertised(msgspec.Struct, frozen=True):
    """The advertisement is stable: events under it are no longer held back."""

    advertisement: str


class Confirmed(msgspec.Struct, frozen=True):
    """Every event of this client up to `seq` is safe: f + 1 brokers hold it."""

    seq: int


class Rejected(msgspec.Struct, frozen=True):
    """A client's call was refused; `reason` is a sentence for its user."""

    call: Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
    reason: str


Effect: TypeAlias = (
    Send
    | SetTimer
    | Expel
    | Keep
    | ReadHistory
    | Published
    | PublishedMany
    | Deliver
    | DeliverMany
    | CutFixed
    | CutsVoided
    | Skipped
    | CaughtUp
    | Activated
    | Ended
    | Advertised
    | Confirmed
    | Rejected
    | Opened
    | Confirming
    | NamesListed
    | NameChanged
)


# ---- nodes and protocols ----------------------------------------------------------------------------------


class BrokerPlace(msgspec.Struct, frozen=True):
    """Where a broker stands at its start. It knows the overlay around it up to distance f + 1 and relies on no more."""

    name: str
    overlay: Overlay
    f: int
    incarnation: int = 0
    disk: DiskContents | None = None
    """What its disk holds, which may be nothing; None if it has no disk."""


class ClientPlace(msgspec.Struct, frozen=True):
    """Where a client stands: its broker, and all brokers it may turn to (its own first, then by distance)."""

    name: str
    broker: str
    contacts: tuple[str, ...]


class Node(Protocol):
    """A broker or a client of some protocol."""

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes, in order."""
        ...

    def state_size(self) -> Mapping[str, int]:
        """How much the node keeps, by kind (for example subscriptions, retained events)."""
        ...


class BrokerNode(Node, Protocol):
    """A broker of some protocol. Beyond its steps it can be asked how it is; those that do not know keep the answers
    that stand here."""

    def overview(self) -> dict[str, Any]:
        """What an operator should see of it."""
        return {}

    def sessions(self) -> list[str]:
        """The clients whose sessions are here."""
        return []

    def has_session(self, client: str) -> bool:
        """Whether the client's session is here."""
        return False

    def held_by(self, client: str) -> dict[str, str]:
        """The filters of a client's subscriptions, by name."""
        return {}

    def reads_history(self, client: str) -> bool:
        """Whether the client is brought what was published before."""
        return False

    def measured(self) -> Mapping[str, Mapping[int, int]]:
        """What it measured of itself, where an option asks for that: how often each number came, by what it counts."""
        return {}


class ClientNode(Node, Protocol):
    """A client of some protocol. It can be asked who serves it; those that do not know keep the answers that stand
    here."""

    @property
    def broker(self) -> str:
        """The broker that serves it, or is asked to; empty if it does not tell."""
        return ""

    @property
    def window(self) -> int:
        """How many publications may wait to become safe; it rejects what goes beyond."""
        return 1_000

    @property
    def delivery_window(self) -> int:
        """How many deliveries a broker sends ahead of the application; 0 if it does not wait for it."""
        return 0

    @property
    def is_attached(self) -> bool | None:
        """Whether a broker holds its session, and knows what it wants; None if there are no sessions."""
        return None

    @property
    def standing(self) -> tuple[str, int, int]:
        """Who holds its session, its attempt, and the number of its last event."""
        return "", 0, 0

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Before it starts: it goes on as a client of the same name that is no more."""
        raise AssertionError("the protocol knows no sessions")


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a client's message asks for, so that a runtime can judge it before a broker's node sees it."""

    subscriptions: Mapping[str, str] = {}
    """Filters, by name."""
    histories: Sequence[str] = ()
    """Those of them that ask for what was published before."""
    named: Mapping[str, str] = {}
    """The names in the network that it wants to hold, by subscription; and those that it speaks of, because it should
    hold them already, by what it calls them."""
    listing: str = ""
    """If it asks which named subscriptions there are: what it calls this question."""
    advertisements: Mapping[str, str] = {}
    events: Sequence[Event] = ()
    ended: str = ""
    """A subscription or an advertisement that it ends."""
    is_whole: bool = False
    """Whether the client has no other subscriptions and advertisements than these."""


class Judging(msgspec.Struct, frozen=True):
    """How a protocol lets a runtime judge what its clients ask for.

    Its brokers then also say whose sessions they have, and what those hold (`sessions`, `held_by`, `reads_history`).
    """

    demand: Callable[[Any], Demand | None]
    """What a message of a client asks for; None if nothing."""
    rewrite: Callable[[Any, Mapping[str, str], Set[str]], Any]
    """The message with other filters for some subscriptions, and without the subscriptions and advertisements in the
    set; None if nothing is left of it."""


def any_overlay(overlay: Overlay) -> str | None:
    """Refuses nothing: for protocols that run over any graph."""
    return None


def _needs_tree(overlay: Overlay) -> str | None:
    """Refuses graphs with cycles, as most protocols do."""
    if overlay.is_tree:
        return None
    brokers, links = len(overlay.brokers), len(overlay.edges)
    return f"it takes trees only: {brokers} brokers need {brokers - 1} edges to form a tree, but {links} are given"


def _warns_of_nothing(_overlay: Overlay, _f: int, _options: Any) -> None:
    return None


class ProtocolSpec(msgspec.Struct, frozen=True):
    """A protocol: how its nodes are made, and what runtimes have to know of it."""

    name: str
    guarantee: Guarantee
    summary: str
    options: type[msgspec.Struct]
    """Frozen struct with a default for every field; scenario files set its fields by name."""
    broker: Callable[[BrokerPlace, Any], BrokerNode]
    client: Callable[[ClientPlace, Any], ClientNode]
    takes_many: bool = False
    """Whether clients take `PublishMany`."""
    paces: bool = False
    """Whether clients take `Consumed`, and no more is sent to them ahead of it than a bounded number of deliveries."""
    ends_sessions: bool = False
    """Whether brokers take `EndSession`, and say whose session they have."""
    keeps_history: bool = False
    """Whether clients take `Subscribe` with a position since when."""
    keeps_names: bool = False
    """Whether clients take `Subscribe` with a name, `Confirm`, `ListNames` and `MoveName`."""
    keeps_disks: bool = False
    """Whether brokers use a disk where their place has one."""
    copes_with: frozenset[str] = frozenset()
    """Faults under which the guarantee holds: of crash, restart, cut, suspicion, disk, blackout, partition, loss,
    duplication, relink."""
    messages: tuple[type[msgspec.Struct], ...] = ()
    """What its nodes send, as tagged array-like structs; empty means all those in the package's module `messages`."""
    client_messages: tuple[type[msgspec.Struct], ...] = ()
    """What its clients send; a broker takes nothing else from a client. Empty means any message."""
    confirms: bool = False
    """Its clients say `Confirmed`. Without that, a publication is done when its broker's connection has taken it."""
    judging: Judging | None = None
    """How its clients' messages can be judged. Without, a network cannot say what each of them may do."""
    whole_cuts: bool = False
    """Its subscriptions are active when their cut is whole, unless asked for otherwise (see `Ready`)."""
    topics_only: bool = False
    """It serves filters of the form `topic = '…'` alone; its clients reject all others."""
    refuses: Callable[[Overlay], str | None] = _needs_tree
    """Why it cannot run over an overlay, in a sentence; None if it can. By default it takes trees only."""

    warns: Callable[[Overlay, int, Any], str | None] = _warns_of_nothing
    """What an operator should know of an overlay, f and options that go together badly, in a sentence; None if well."""

    def ready(self, call: Subscribe) -> Ready:
        """What it means for this subscription to be active."""
        return call.ready if self.whole_cuts else "first"


def convert_options(spec: ProtocolSpec, options: Mapping[str, Any]) -> msgspec.Struct:
    """The options struct of the protocol with these fields set."""
    known = spec.options.__struct_encode_fields__
    for key in options:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known) or 'none'}"
            raise ProtocolError(f"protocol {spec.name!r} has no option {key!r}; {hint}")
        value = options[key]
        if isinstance(value, int | float) and not abs(value) < 2**63:  # which NaN is not, either
            raise ProtocolError(f"options of protocol {spec.name!r}: {key} = {value} is not a number to work with")
    try:
        return msgspec.convert(dict(options), spec.options)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"options of protocol {spec.name!r}: {error}") from None


def check_overlay(spec: ProtocolSpec, overlay: Overlay) -> None:
    """Raise a `ProtocolError` if the protocol refuses this overlay; every runtime asks before it starts."""
    reason = spec.refuses(overlay)
    if reason is not None:
        raise ProtocolError(f"protocol {spec.name!r} cannot run here: {reason}")
