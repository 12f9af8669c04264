"""A client of a network, for programs with an event loop.

All that has to be remembered to survive a broker is the protocol's own client node, the same that the simulator runs.
This file turns calls into its inputs, and its effects into answers: it knows no broker, no retry and no fail-over.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, get_args, overload

import msgspec

from gapless.client.advertisement import Advertisement
from gapless.client.archived import log_seam, open_past
from gapless.client.arguments import check_choice, check_count, check_text, check_timeout
from gapless.client.changes import Changes, WatchedLinks, WatchedNode, Watching, serving
from gapless.client.confirmations import Confirmations
from gapless.client.guarded_codec import GuardedCodec
from gapless.client.hints import hint_at_filter
from gapless.client.hold_up import HoldUp
from gapless.client.holdings import Holdings
from gapless.client.introduction import Introduction
from gapless.client.milestones import Milestones, Survey
from gapless.client.naming import REDELIVER_S, check_name_of, check_naming, check_sharing, find_named
from gapless.client.positions import Since, position_of
from gapless.client.publications import EventLike, Payload, Publication
from gapless.client.publishing import Publishing
from gapless.client.reader import Reader
from gapless.client.recording import start_recording
from gapless.client.requests import ANSWERABLE, Replies, Requests
from gapless.client.spare_links import SpareLinks
from gapless.client.standing import Standing
from gapless.client.subscription import (
    BaseSubscription,
    ConfirmableSubscription,
    OnFull,
    Subscription,
    TypedSubscription,
    chosen_policy,
)
from gapless.errors import CallError, ClosedError, EventError, GaplessError, SkippedError
from gapless.events import Event
from gapless.filters import parse
from gapless.names import Confirmation, MoveName, NamedSubscription
from gapless.protocol import (
    ClientPlace,
    Confirmed,
    PublicationsLost,
    Publish,
    Published,
    PublishedMany,
    Ready,
    Rejected,
    Start,
    Subscribe,
    convert_options,
)
from gapless.registry import find_protocol
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.wire import Welcome

__all__ = ["Client"]

LEAVE_S = 5.0
"""How long a client that leaves waits for its subscriptions to end, and for a broker that knows it."""

_NOW = -1
"""As the end of a reading: what was confirmed when it began."""
_RECENT_US = 10_000_000
"""Who asks for the newest position looks at no more history than this."""

REQUEST_S = 10.0
"""How long a request waits for its reply, if its caller does not say."""

T = TypeVar("T")
S = TypeVar("S", bound=BaseSubscription[Any])


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
        self._spec = find_protocol(welcome.protocol)
        options = convert_options(self._spec, welcome.options)
        place = ClientPlace(name, welcome.name, tuple(welcome.contacts))
        self._node = self._spec.client(place, options)
        self._publishing = Publishing(self, self._spec, welcome.settings, self._node.window)
        self._serial = 0
        if standing is not None:
            self._serial = standing.attempt  # so that nothing of the process before has the same name
            self._node.take_over(standing.home, standing.attempt, standing.seq)
            self._publishing.unsafe.published = self._publishing.unsafe.confirmed = standing.seq
        self.lost_publications: list[tuple[int, int]] = []
        """What this client published, was told to be safe, and is lost all the same, because more brokers failed than
        may: the first and last number of each range."""
        self.on_publications_lost: Callable[[list[tuple[int, int]]], object] | None = None
        """Called with such ranges when they become known, in the event loop: it must not wait."""
        self._rejection: Rejected | None = None
        self._holdings = Holdings(self, paces=self._spec.paces, window=self._node.delivery_window)
        self._subscriptions = self._holdings.subscriptions
        self._pacing = self._holdings.pacing
        self._error: GaplessError | None = None
        self._is_leaving = False
        self._is_closed = False
        self._breaking: asyncio.Task[None] | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            Published: self._publishing.on_published,
            PublishedMany: self._publishing.on_published_many,
            Confirmed: self._publishing.on_confirmed,
            PublicationsLost: self._on_publications_lost,
            Rejected: self._on_rejected,
            **self._holdings.handlers,
        }
        self._recording = start_recording(trace, welcome, self._spec, options, name) if trace else None
        if self._recording is not None:
            self._handlers = self._recording.wrap(self._handlers)
        addresses = self._addresses = {**welcome.addresses, welcome.name: address}
        self._introduction = Introduction(name, welcome, addresses, access, self._break, patience_s)
        self._links = WatchedLinks(
            name,
            self._introduction,
            welcome.settings,
            GuardedCodec(self._spec, welcome.settings.client_frame_max, self._break),
            addresses,
            handlers=self._handlers,
            failed=self._break,
            logger=logging.getLogger("gapless.client"),
            tls=access.context,
        )
        self._links.denied = self._holdings.deny
        lag_s = getattr(options, "lag_ms", math.inf) / 1000
        progress = self._publishing.progress if self._spec.confirms else None
        self._hold_up = HoldUp(name, addresses, progress, access, lag_s)
        self._spare_links = SpareLinks(self._links, self._node)
        self._watching = Watching(lambda: serving(self._links, self._node))
        self._links.look = self._watching.look
        self._links.host.inhabit(WatchedNode(self._node, self._watching.look))
        self._replies = Replies(self, self._publishing)
        self._links.give(Start())

    def __repr__(self) -> str:
        return f"<Client {self.name} of network {self.network}>"

    # ---- calls --------------------------------------------------------------------------------------------

    async def advertise(self, filter: str) -> Advertisement:  # noqa: A002 - the word for it
        """Say what you will publish. Returns when the network knows, so that publications are not held back."""
        _check_filter(filter)
        self._check_open()
        advertisement = Advertisement(self, self._new_name("a"), filter)
        await self._holdings.advertise(advertisement)
        return advertisement

    async def unadvertise(self, advertisement: Advertisement) -> None:
        """Take an advertisement back."""
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
        confirm: Confirmation = "taken",
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
        confirm: Confirmation = "taken",
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
        confirm: Confirmation = "taken",
        replace: bool = False,
        share: bool = False,
        redeliver_s: float = REDELIVER_S,
        on_full: OnFull | None = None,
        queue: int = 10_000,
        ready: Ready = "whole",
    ) -> Any:
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
        raises a `GivenAwayError`. What you get comes in causal order, but for what is given again (`event.is_again`).

        `on_full` says what happens if you do not take the events (see `gapless.client.subscription`): `block`, the
        default where the protocol can hold back, or `fail` when more than `queue` of them wait. With a `type`, a
        msgspec struct or a dataclass, you get values of that type instead of events (see `gapless.client.reader`).
        """
        settings = self._settings_of(filter, on_full, queue)
        check_choice("ready", ready, get_args(Ready))
        title = check_naming(self._spec, name, confirm, replace=replace, has_since=since is not None, ready=ready)
        check_sharing(name, redeliver_s, share=share)
        position = -1 if since is None else self._position_of("since", since)
        again: Any = partial(
            self.subscribe, filter, name=name, confirm=confirm, replace=replace, share=share, redeliver_s=redeliver_s,
            on_full=on_full, queue=queue, ready=ready,
        )  # fmt: skip
        made = self._made(settings, again, type, is_named=bool(title))
        if title:
            made.title = title
            made._confirmations = Confirmations(made.name, self._tell, is_manual=confirm == "manual", is_shared=share)
        if archive is not None:
            if since is None:
                raise CallError("an archive holds what was published before: say since when you want it (since=…)")
            return self._begin_in(archive, made, ready, position, None)
        sharing = redeliver_s if share else None
        return await self._begin(made, ready, position, replace=replace, redeliver_s=sharing)

    async def named_subscriptions(self) -> list[NamedSubscription]:
        """The named subscriptions of the network, by name: filter, position, how far behind, and who listens."""
        check_name_of(self._spec, "any")
        self._check_open()
        return await self._holdings.names()

    async def move_subscription(self, name: str, to: Since) -> None:
        """Let a named subscription go on after a position, written as `since`. Who listens to it is ended."""
        check_name_of(self._spec, name)
        await self._move(name, self._position_of("to", to))

    async def end_subscription(self, name: str) -> None:
        """End a named subscription for good. Who listens to it is ended."""
        check_name_of(self._spec, name)
        await self._move(name, -1)

    async def _move(self, name: str, position: int) -> None:
        found = find_named(name, await self.named_subscriptions())
        await self._holdings.move(MoveName(self._new_name("m"), name, found.filter, position))

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
    ) -> Any:
        """What was published after one position and up to another, in causal order; then it ends.

        Without `until` that is everything that was published, and confirmed, before the call. Positions are written as
        in `subscribe`. If some of it is gone, a `SkippedError` says so in its place. With an `archive`, a directory
        that `gapless archive` writes, what that holds is read there, and the rest from brokers; `seam` says where.

        All subscriptions and readings of a client share one window: one whose events you do not take stops the others.
        Close what you do not read to its end. If you forget, the log `gapless.client` says which it is.
        """
        settings = self._settings_of(filter, None, 10_000)
        begin, end = self._range_of(since, until)
        again: Any = partial(self.read, filter, since=since, until=until, archive=archive)
        made = self._made(settings, again, type)
        if archive is not None:
            end = await self.position() if end == _NOW else end
            return self._begin_in(archive, made, "whole", begin, end)
        return await self._begin(made, "whole", begin, end)

    def _begin_in(self, archive: Path | str, made: S, ready: Ready, since: int, until: int | None) -> S:
        """Let the archive come first, and brokers after it."""
        past = open_past(archive, self.network, made.filter, since, until)

        async def go_on(seam: int) -> None:
            self._check_open()
            log_seam(made.filter, archive, seam)
            await self._begin(made, ready, seam, 0 if until is None else until)

        made._begin_in(past, self, go_on)
        return made

    async def position(self) -> int:
        """The newest position: everything that was published, and confirmed, before this call lies up to it."""
        reading = await self.read("FALSE", since=max(0, time.time_ns() // 1000 - _RECENT_US))
        while not reading.is_over:
            with suppress(SkippedError):
                await reading.take()
        return reading.position

    async def milestones(self, *, since: Since = "earliest", until: Since | None = None) -> Milestones:
        """Positions between two others, about equally many events apart: where a range of history can be divided.

        Without `until` the last of them is the newest position: what `position` tells.
        """
        begin, end = self._range_of(since, until)
        settings = self._settings_of("FALSE", None, 10_000)
        survey = Survey(self, self._pacing.took, *settings, partial(self.read, "FALSE", since=since, until=until))
        return await (await self._begin(survey, "whole", begin, end)).milestones(begin)

    def _range_of(self, since: Since, until: Since | None) -> tuple[int, int]:
        begin = self._position_of("since", since)
        end = _NOW if until is None else self._position_of("until", until)
        if 0 <= end <= begin:
            raise CallError(f"until ({until!r}) does not lie after since ({since!r}): nothing is between them")
        return begin, end

    def _position_of(self, what: str, value: Since) -> int:
        if not self._spec.keeps_history:
            raise CallError(f"protocol {self._spec.name!r} keeps no history; leave out {what}")
        return position_of(what, value)

    async def answer(self, filter: str, *, on_full: OnFull | None = None, queue: int = 10_000) -> Requests:  # noqa: A002
        """Ask for requests that match, to answer them. Returns when the starting cut is fixed, as `subscribe` does."""
        _check_filter(filter)
        settings = self._settings_of(f"({filter}) AND {ANSWERABLE}", on_full, queue)
        return await self._begin(
            Requests(self, self._pacing.took, *settings, lambda: self.answer(filter, on_full=on_full, queue=queue))
        )

    def _settings_of(self, text: str, on_full: OnFull | None, queue: int) -> tuple[str, str, OnFull, int]:
        _check_filter(text)
        self._check_open()
        return self._new_name("s"), text, chosen_policy(self._spec, on_full), check_count("queue", queue)

    def _made(
        self, settings: tuple[str, str, OnFull, int], again: Any, kind: type[Any] | None, *, is_named: bool = False
    ) -> Any:
        """A subscription to events, or to values of a type; `again` makes another one like it."""
        if kind is None:
            made = ConfirmableSubscription if is_named else Subscription
            return made(self, self._pacing.took, *settings, again)
        return TypedSubscription(self, self._pacing.took, *settings, partial(again, type=kind), Reader(kind))

    async def _begin(
        self,
        subscription: S,
        ready: Ready = "whole",
        since: int = -1,
        until: int = 0,
        *,
        replace: bool = False,
        redeliver_s: float | None = None,
    ) -> S:
        """With `redeliver_s`, a group shares it."""
        title = subscription.title
        confirm: Confirmation = (
            "manual" if title else "taken"
        )  # the application is nearer to what it took than the node
        call = Subscribe(subscription.name, subscription.filter, ready, since, until, title, confirm, replace)
        if redeliver_s is not None:
            call = msgspec.structs.replace(call, share=True, redeliver_s=redeliver_s)
        subscription.position, subscription.is_live = max(0, since), since < 0
        if self._recording is not None:
            self._recording.subscribes(subscription.name, subscription.filter, self._spec.ready(call))
        await self._holdings.subscribe(subscription, call)
        if self._recording is not None:
            self._recording.returns(subscription.name)
        return subscription

    async def unsubscribe(self, subscription: BaseSubscription[Any]) -> None:
        """End a subscription; returns when its ending cut is known."""
        await self._holdings.unsubscribe(subscription)

    async def publish(self, attributes: EventLike, payload: Payload = b"") -> Event:
        """Publish an event. Returns when it is safe: it will reach every matching subscriber, whatever fails."""
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
    ) -> Any:
        """Publish a request, and return the first reply to it; with a `type`, as a value of that.

        `reply` is a filter that replies match; the narrower it is, the fewer brokers have to know of it. If none comes
        in time, a `NoReplyError` says whether the request is safe, and so reaches everyone who answers such requests.
        """
        _check_filter(reply)
        reader = None if type is None else Reader(type)
        event = await self._replies.ask(attributes, payload, reply, check_timeout(timeout_s))
        return event if reader is None else reader.read(event)

    async def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, take all advertisements back, and disconnect.

        Without `leave` it only disconnects: the network keeps its place for a while, as if it were away.
        """
        if self._is_closed:
            return
        self._is_leaving = True
        try:
            if leave and self._error is None:
                async with asyncio.timeout(LEAVE_S):
                    await self._leave()
        except (TimeoutError, GaplessError):
            pass  # nobody there to say goodbye to; the session ends by itself
        finally:
            self._is_closed = True
            self._fail(ClosedError("the client is closed"))
            self._introduction.close()
            self._hold_up.close()
            self._spare_links.close()
            if self._breaking is not None:
                await self._breaking
            await self._links.close()
            if self._recording is not None:
                self._recording.close()

    async def _leave(self) -> None:
        for advertisement in list(self._holdings.advertisements.values()):
            await self.unadvertise(advertisement)
        await asyncio.gather(*(self.unsubscribe(subscription) for subscription in list(self._subscriptions.values())))
        while self._links.queues.unsent or self._is_looking_for_a_broker():
            await asyncio.sleep(0.005)

    def _is_looking_for_a_broker(self) -> bool:
        return self._links.host.node is not None and self._node.is_attached is False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- between calls and effects ------------------------------------------------------------------------

    def _new_name(self, kind: str) -> str:
        self._serial += 1
        return f"{self.name}/{kind}{self._serial}"

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error
        if self._is_leaving:
            raise ClosedError("the client is about to close")

    def _call(self, call: Any) -> None:
        """Give the call to the node; raise what it objects to."""
        if self._error is not None:
            raise self._error
        self._rejection = None
        self._links.give(call)
        if self._error is not None:
            raise self._error
        rejection, self._rejection = self._rejection, None
        if rejection is not None:
            kind = EventError if isinstance(rejection.call, Publish) else CallError
            raise kind(rejection.reason)

    def _note_beginning(self, began_us: int) -> None:
        """What is published next was asked for then: a trace counts from the call, not from when it leaves."""
        if self._recording is not None:
            self._recording.publishes(began_us)

    def _flush(self) -> None:
        self._links.host.flush()

    async def _wait_for_links(self) -> None:
        await self._links.queues.wait_for_room()

    def _tell(self, news: Any) -> None:
        """Give the node what it cannot object to."""
        if self._error is None:
            self._links.give(news)

    # ---- effects ------------------------------------------------------------------------------------------

    def _on_publications_lost(self, effect: PublicationsLost) -> None:
        """More brokers failed than may. Who should have got these events is told; so is who published them."""
        shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in effect.ranges)
        logging.getLogger("gapless.client").warning(
            "publications that were confirmed are lost", extra={"client": self.name, "numbers": shown}
        )
        self.lost_publications.extend(effect.ranges)
        if self.on_publications_lost is not None:
            try:
                self.on_publications_lost(list(effect.ranges))
            except Exception:
                logging.getLogger("gapless.client").exception("on_publications_lost failed")

    def _on_rejected(self, effect: Rejected) -> None:
        if self._rejection is None:
            self._rejection = effect
        self._holdings.reject(effect)

    def _break(self, error: BaseException) -> None:
        """The client cannot go on: no call may wait for what does not come, and nobody is kept waiting for us."""
        if self._breaking is None and not self._is_closed:
            self._fail(error)
            self._breaking = self._links.loop.create_task(self._links.close(with_goodbye=False))

    def _fail(self, error: BaseException) -> None:
        """Nothing goes on: tell everyone who waits."""
        if self._error is None:
            self._error = error if isinstance(error, GaplessError) else ClosedError(f"the client failed: {error!r}")
        self._holdings.fail(self._error, is_closed=self._is_closed)
        self._publishing.fail(self._error)
        self._watching.end(None if self._is_closed else self._error)

    # ---- how it is -------------------------------------------------------------------------------------------

    @property
    def is_all_confirmed(self) -> bool:
        """Whether everything published so far is safe."""
        return self._publishing.is_all_confirmed

    @property
    def hold_up(self) -> str:
        """For what the network waits, if nothing published has become safe for seconds: who holds everybody up, and for
        how long. Empty if all goes well, or if the protocol confirms nothing."""
        return self._hold_up.reason

    @property
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return "" if self._links.host.node is None else self._node.broker

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
        return Standing(self.name, *self._node.standing)

    @property
    def addresses(self) -> dict[str, str]:
        """Where the brokers of the network are, by name, as the first of them told."""
        return dict(self._addresses)

    def changes(self) -> Changes:
        """What becomes of the client's place in the network: connected, lost, moved; first, how it is now."""
        return self._watching.watch()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to a broker now. Calls may be made at any time; they wait for one."""
        return any(link.connection is not None for link in self._links.links.values())


def _check_filter(text: str) -> None:
    parse(check_text("a filter", text))
    hint_at_filter(text)
