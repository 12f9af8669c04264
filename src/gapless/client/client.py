"""A client of a network, for programs with an event loop: the calls that they make.

What becomes of them is elsewhere: `gapless.client.presence` keeps the protocol's node and its connections, and
`publishing`, `subscribing`, `holdings` and `requests` beside it do what the calls have in common.
"""

from collections.abc import AsyncIterable, Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, get_args, overload

from gapless.client.advertisement import Advertisement
from gapless.client.arguments import check_choice, check_kind, check_timeout
from gapless.client.changes import Changes
from gapless.client.confirmations import Confirmations
from gapless.client.milestones import Milestones, Survey
from gapless.client.naming import REDELIVER_S, check_name_of, check_naming, check_sharing, find_named
from gapless.client.positions import Since
from gapless.client.presence import Presence
from gapless.client.publications import EventLike, Payload, Publication
from gapless.client.publishing import TellLost
from gapless.client.reader import Reader
from gapless.client.requests import ANSWERABLE, Replies, Requests
from gapless.client.standing import Standing
from gapless.client.subscribing import Subscribing, check_filter
from gapless.client.subscription import (
    BaseSubscription,
    ConfirmableSubscription,
    OnFull,
    Subscription,
    TypedSubscription,
)
from gapless.errors import CallError
from gapless.events import Event, PublishedEvent
from gapless.names import AckMode, DurableInfo, MoveDurable
from gapless.positions import Position
from gapless.protocol import NEWEST, Ready
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.wire import Welcome

__all__ = ["Client"]

REQUEST_S = 10.0
"""How long a request waits for its reply, if its caller does not say."""

T = TypeVar("T")


class Client:
    """One client of the network. Made by `connect`."""

    def __init__(
        self, welcome: Welcome, name: str, *,
        address: str, trace: str = "", access: Access = CLEAR, standing: Standing | None = None,
        patience_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.name = name
        """Unique in the network; its events carry it as their publisher."""
        self.network = welcome.network_name
        self.protocol = welcome.protocol
        self._presence = Presence(
            welcome, name, address=address, trace=trace, access=access, standing=standing, patience_s=patience_s
        )
        self._holdings = self._presence.holdings
        self._publishing = self._presence.publishing
        self._subscribing = Subscribing(self, self._presence)
        self._replies = Replies(self, self._publishing)

    def __repr__(self) -> str:
        return f"<Client {self.name} of network {self.network}>"

    # ---- calls --------------------------------------------------------------------------------------------

    async def advertise(self, filter: str) -> Advertisement:  # noqa: A002 - the word for it
        """Say what you will publish. Returns when the network knows, so that publications are not held back."""
        check_filter(filter)
        self._presence.check_open()
        advertisement = Advertisement(self, self._presence.new_name("a"), filter)
        await self._holdings.advertise(advertisement)
        return advertisement

    async def unadvertise(self, advertisement: Advertisement) -> None:
        """Take an advertisement back."""
        check_kind("an advertisement", advertisement, Advertisement, "advertise()")
        self._holdings.unadvertise(advertisement)

    @overload
    async def subscribe(
        self,
        filter: str,
        *,
        since: Since | None = None,
        archive: Path | str | None = None,
        name: None = None,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> Subscription: ...

    @overload
    async def subscribe(
        self,
        filter: str,
        *,
        name: str,
        confirm: AckMode = "auto",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
    ) -> ConfirmableSubscription: ...

    @overload
    async def subscribe(
        self,
        filter: str,
        *,
        type: type[T],
        since: Since | None = None,
        archive: Path | str | None = None,
        name: str | None = None,
        confirm: AckMode = "auto",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> TypedSubscription[T]: ...

    async def subscribe(
        self,
        filter: str,  # noqa: A002
        *,
        type: type[Any] | None = None,  # noqa: A002
        since: Since | None = None,
        archive: Path | str | None = None,
        name: str | None = None,
        confirm: AckMode = "auto",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> Subscription | ConfirmableSubscription | TypedSubscription[Any]:
        """Ask for what matches. Every matching event whose publication begins after this has returned is delivered.

        With `since`, a position, a time, an age or "earliest" (see `gapless.client.positions`), what was published
        after that comes first, in causal order, and then, without a gap or a duplicate, what is published. If some of
        it is gone, a `SkippedError` says so in its place.

        With an `archive` as well, a directory that `gapless archive` writes, what that holds is read there first. When
        you have taken all of it, it goes on with brokers at the seam (`subscription.seam`): then it becomes active.

        It returns when the starting cut is whole, one number for every publisher that may match, and f + 1 brokers know
        the subscription. With `ready="first"` it returns with the first of these numbers, as the papers have it: what a
        publisher farther away says next may then be missed.

        With a `name` the subscription outlives this client: whoever opens it next, here or elsewhere, however much
        later, goes on after what was confirmed, with nothing missing, and nothing twice but what was not confirmed.
        What you take is confirmed; with `confirm="manual"`, what you confirm: `await event.confirm()`, or
        `await subscription.confirm(upto)`, each with all that came before it. One client at a time has it; who had it
        before gets a `SubscriptionEndedError`. With another filter than before it is refused, unless `replace` is set.

        With `share=True` a group has it, all who open it so, and each event goes to one of them. What a member has not
        confirmed within `redeliver_s` goes to another, as does what one has that leaves or dies; to confirm it then
        raises a `GivenAwayError`. Events come in causal order, but for those that are `event.redelivered`.

        `on_full` says what happens if you do not take the events (see `gapless.client.subscription`): `block`, the
        default where the protocol can hold back, or `fail` when more than `queue` of them wait. With a `type`, a
        msgspec struct or a dataclass, you get values of that type instead of events (see `gapless.client.reader`).
        """
        settings = self._subscribing.settings(filter, on_full, queue)
        check_choice("ready", ready, get_args(Ready))
        title = check_naming(
            self._presence.spec, name, confirm, replace=replace, has_since=since is not None, ready=ready
        )
        check_sharing(name, redeliver_s, share=share)
        position = await self._subscribing.beginning(since)
        again: Any = partial(
            self.subscribe, filter, name=name, confirm=confirm, replace=replace, share=share, redeliver_s=redeliver_s,
            on_full=on_full, queue=queue, ready=ready,
        )  # fmt: skip
        made: Subscription | ConfirmableSubscription | TypedSubscription[Any] = self._subscribing.make_for(
            type, settings, again, is_named=bool(title)
        )
        if title:
            made.title = title
            made._confirmations = Confirmations(
                made.name, self._presence.tell, is_manual=confirm == "manual", is_shared=share,
                making=self._subscribing.making,
            )  # fmt: skip
        if archive is not None:
            if position is None:
                raise CallError("an archive holds what was published before: say since when you want it (since=…)")
            return self._subscribing.begin_in(archive, made, ready, position, None)
        sharing = redeliver_s if share else None
        return await self._subscribing.begin(made, ready, position, replace=replace, redeliver_s=sharing)

    async def named_subscriptions(self) -> list[DurableInfo]:
        """The named subscriptions of the network, by name: filter, position, how far behind, and who listens."""
        check_name_of(self._presence.spec, "any")
        self._presence.check_open()
        return await self._holdings.names()

    async def move_subscription(self, name: str, to: Since) -> None:
        """Let a named subscription go on after a position, written as `since`. Who listens to it is ended."""
        check_name_of(self._presence.spec, name)
        await self._move(name, await self._subscribing.position("to", to))

    async def end_subscription(self, name: str) -> None:
        """End a named subscription for good. Who listens to it is ended."""
        check_name_of(self._presence.spec, name)
        await self._move(name, None)

    async def _move(self, name: str, position: Position | None) -> None:
        found = find_named(name, await self.named_subscriptions())
        await self._holdings.move(MoveDurable(self._presence.new_name("m"), name, found.filter, position))

    @overload
    async def read(
        self, filter: str, *, since: Since = "earliest", until: Since | None = None, archive: Path | str | None = None
    ) -> Subscription: ...

    @overload
    async def read(
        self,
        filter: str,
        *,
        type: type[T],
        since: Since = "earliest",
        until: Since | None = None,
        archive: Path | str | None = None,
    ) -> TypedSubscription[T]: ...

    async def read(
        self,
        filter: str,  # noqa: A002
        *,
        type: type[Any] | None = None,  # noqa: A002
        since: Since = "earliest",
        until: Since | None = None,
        archive: Path | str | None = None,
    ) -> Subscription | TypedSubscription[Any]:
        """What was published after one position and up to another, in causal order; then it ends.

        Without `until` that is everything that was published, and confirmed, before the call. Positions are written as
        in `subscribe`. If some of it is gone, a `SkippedError` says so in its place. With an `archive`, a directory
        that `gapless archive` writes, what that holds is read there, and the rest from brokers; `seam` says where.

        All subscriptions and readings of a client share one window: one whose events you do not take stops the others.
        Close what you do not read to its end. If you forget, the log `gapless.client` says which it is.
        """
        settings = self._subscribing.settings(filter)
        begin, end = await self._subscribing.range(since, until)
        again: Any = partial(self.read, filter, since=since, until=until, archive=archive)
        made: Subscription | TypedSubscription[Any] = self._subscribing.make_for(type, settings, again)
        if archive is not None:
            end = await self.position() if end == NEWEST else end
            return self._subscribing.begin_in(archive, made, "whole", begin, end)
        return await self._subscribing.begin(made, "whole", begin, end)

    async def position(self, at: Since = "now") -> Position:
        """The newest position: everything that was published, and confirmed, before this call lies up to it.

        With an age or a time, the position of that time. A broker answers; this machine's clock is not used.
        """
        return await self._subscribing.position("at", at)

    async def milestones(self, *, since: Since = "earliest", until: Since | None = None) -> Milestones:
        """Positions between two others, about equally many events apart: where a range of history can be divided.

        Without `until` the last of them is the newest position: what `position` tells.
        """
        settings = self._subscribing.settings("FALSE")
        begin, end = await self._subscribing.range(since, until)
        again = partial(self.read, "FALSE", since=since, until=until)
        survey = self._subscribing.make(Survey, settings, again)
        return await (await self._subscribing.begin(survey, "whole", begin, end)).milestones(begin)

    async def answer(
        self,
        filter: str,  # noqa: A002
        *,
        group: str | None = None,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
    ) -> Requests:
        """Ask for requests that match, to answer them. Returns when the starting cut is fixed, as `subscribe` does.

        With a `group`, the name of a durable subscription, all who answer under that name share the requests: each goes
        to one of them. One that is neither answered nor dismissed within `redeliver_s`, or whose worker leaves or dies,
        goes to another. Requests that come while nobody of the group is there wait for the next that is.
        """
        check_filter(filter)
        settings = self._subscribing.settings(f"({filter}) AND {ANSWERABLE}", on_full, queue)
        again = partial(self.answer, filter, group=group, redeliver_s=redeliver_s, on_full=on_full, queue=queue)
        made = self._subscribing.make(Requests, settings, again)
        if group is None:
            if redeliver_s != REDELIVER_S:
                raise CallError("redeliver_s is for requests that a group shares: say group='…', too")
            return await self._subscribing.begin(made)
        made.title = check_name_of(self._presence.spec, group)
        check_sharing(group, redeliver_s, share=True)
        made._confirmations = Confirmations(made.name, self._presence.tell, is_manual=True, is_shared=True)
        return await self._subscribing.begin(made, redeliver_s=redeliver_s)

    async def unsubscribe(self, subscription: BaseSubscription[Any]) -> None:
        """End a subscription; returns when its ending cut is known."""
        check_kind("a subscription", subscription, BaseSubscription, "subscribe()")
        await self._holdings.unsubscribe(subscription)

    async def publish(self, attributes: EventLike, payload: Payload = b"") -> PublishedEvent:
        """Publish an event. Returns when it is safe: it will reach every matching subscriber, whatever fails.

        What is returned names the event and equals it, but has no position: the `Event` of a subscription has one.
        """
        event = await self._publishing.publish(self._publishing.check((attributes, payload)))
        await self._publishing.wait_until_safe(event)
        return event

    async def publish_many(self, events: Iterable[Publication] | AsyncIterable[Publication]) -> int:
        """Publish events in order, as fast as the network takes them. Returns how many, when all are safe.

        Events leave as they come. An async iterable may take its time; an ordinary one that does holds up everything
        else in the event loop, and says so in the log. If one event is bad, or the source fails, what came before is
        published. If one was not advertised, so is the rest of its batch, of at most 256.
        """
        return await self._publishing.publish_many(events)

    @overload
    async def request(
        self, attributes: EventLike, payload: Payload = b"", *,
        reply: str = "TRUE", timeout_s: float | None = REQUEST_S,
    ) -> Event: ...  # fmt: skip

    @overload
    async def request(
        self, attributes: EventLike, payload: Payload = b"", *,
        type: type[T], reply: str = "TRUE", timeout_s: float | None = REQUEST_S,
    ) -> T: ...  # fmt: skip

    async def request(
        self,
        attributes: EventLike,
        payload: Payload = b"",
        *,
        type: type[Any] | None = None,  # noqa: A002
        reply: str = "TRUE",
        timeout_s: float | None = REQUEST_S,
    ) -> Event | Any:
        """Publish a request, and return the first reply to it; with a `type`, as a value of that.

        `reply` is a filter that replies match; the narrower it is, the fewer brokers have to know of it. If none comes
        in time, a `NoReplyError` says whether the request is safe, and so reaches everyone who answers such requests.
        """
        check_filter(reply)
        reader = None if type is None else Reader(type)
        event = await self._replies.ask(attributes, payload, reply, check_timeout(timeout_s))
        return event if reader is None else reader.read(event)

    async def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, take all advertisements back, and disconnect.

        Without `leave` it only disconnects: the network keeps its place for a while, as if it were away.
        """
        await self._presence.close(leave=leave)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- how it is -------------------------------------------------------------------------------------------

    @property
    def is_all_confirmed(self) -> bool:
        """Whether everything published so far is safe."""
        return self._publishing.is_all_confirmed

    @property
    def lost_publications(self) -> list[tuple[int, int]]:
        """What this client published, was told to be safe, and is lost all the same, because more brokers failed than
        may: the first and last number of each range."""
        return self._publishing.lost

    @property
    def on_publications_lost(self) -> TellLost | None:
        """Called with such ranges when they become known, in the event loop: it must not wait."""
        return self._publishing.tell_lost

    @on_publications_lost.setter
    def on_publications_lost(self, function: TellLost | None) -> None:
        self._publishing.tell_lost = function

    @property
    def hold_up(self) -> str:
        """For what the network waits, if nothing published has become safe for seconds: who holds everybody up, and for
        how long. Empty if all goes well, or if the protocol confirms nothing."""
        return self._presence.hold_up

    @property
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return self._presence.broker

    @property
    def confirmed(self) -> int:
        """Everything that it published up to this number is known to be safe."""
        return self._publishing.unsafe.confirmed

    @property
    def event_max(self) -> int:
        """How many bytes an event may have, attributes and payload together."""
        return self._publishing.event_max

    @property
    def standing(self) -> Standing:
        """What another process has to know to go on as this client, should this one be no more."""
        return self._presence.standing

    @property
    def addresses(self) -> dict[str, str]:
        """Where the brokers of the network are, by name, as the first of them told."""
        return dict(self._presence.addresses)

    def changes(self) -> Changes:
        """What becomes of the client's place in the network: connected, lost, moved; first, how it is now."""
        return self._presence.changes()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to a broker now. Calls may be made at any time; they wait for one."""
        return self._presence.is_connected
