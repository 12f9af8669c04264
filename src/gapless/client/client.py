"""A client of a network, for programs with an event loop.

All that has to be remembered to survive a broker is the protocol's own client node, the same that the simulator runs.
This file turns calls into its inputs, and its effects into answers: it knows no broker, no retry and no fail-over.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

from gapless.client.bootstrap import find_network
from gapless.client.recording import now_us, start_recording
from gapless.client.subscription import OnFull, Subscription
from gapless.errors import CallError, ClosedError, ConnectError, EventError, GaplessError
from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Confirmed,
    Consumed,
    CutFixed,
    CutsVoided,
    Deliver,
    Ended,
    Publish,
    Published,
    PublishMany,
    Rejected,
    Start,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    convert_options,
    find_protocol,
)
from gapless.runtime.codec import Codec
from gapless.runtime.links import Links
from gapless.runtime.wire import CLIENT, Hello, Refusal, Welcome, greeting

__all__ = ["Advertisement", "Client", "Connecting", "Publication", "connect"]

Publication: TypeAlias = Mapping[str, Any] | tuple[Mapping[str, Any], bytes]
"""What `publish_many` takes: attributes, or attributes and a payload."""

PUBLISH_BATCH = 256
BATCH_BYTES = 32 * 1024 * 1024
"""A batch is not larger than that, however large its events."""
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
LEAVE_S = 5.0
"""How long a client that leaves waits for its subscriptions to end, and for a broker that knows it."""


class Advertisement:
    """What this client may publish. Made by `Client.advertise`."""

    def __init__(self, client: "Client", name: str, text: str) -> None:
        self.name = name
        self.filter = text
        self._client = client

    def __repr__(self) -> str:
        return f"<Advertisement {self.name} of {self.filter!r}>"

    async def close(self) -> None:
        """Take it back: nothing published from now on relies on it."""
        await self._client.unadvertise(self)


class Client:
    """One client of the network. Made by `connect`."""

    def __init__(self, welcome: Welcome, name: str, *, address: str, trace: str = "") -> None:
        self.name = name
        """Unique in the network; its events carry it as their publisher."""
        self.network = welcome.network_name
        self.protocol = welcome.protocol
        self._spec = find_protocol(welcome.protocol)
        options = convert_options(self._spec, welcome.options)
        self._settings = welcome.settings
        self._window: int = getattr(options, "client_window", 1_000)
        self._bytes_max = welcome.settings.client_frame_max // 2
        """What waits to become safe is told in one frame to the next broker, if this one is lost."""
        self._serial = 0
        self._rejection: Rejected | None = None
        self._accepted: list[Event] = []
        self._published = 0
        self._confirmed = 0
        self._unsafe_bytes = 0
        self._sizes: deque[tuple[int, int]] = deque()
        """Of what is not safe: the last number of each batch, and its bytes."""
        self._confirmations: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._room: deque[asyncio.Future[None]] = deque()
        self._stable: dict[str, asyncio.Future[None]] = {}
        self._starting: dict[str, asyncio.Future[None]] = {}
        self._ending: dict[str, asyncio.Future[None]] = {}
        self._advertisements: dict[str, Advertisement] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._deliveries = 0
        self._taken = 0
        self._is_telling = False
        self._error: GaplessError | None = None
        self._is_closed = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            Published: self._on_published,
            Confirmed: self._on_confirmed,
            Rejected: self._on_rejected,
            Advertised: self._on_advertised,
            Activated: self._on_activated,
            CutFixed: self._on_cut_fixed,
            CutsVoided: self._on_cuts_voided,
            Deliver: self._on_deliver,
            Ended: self._on_ended,
        }
        self._recording = start_recording(trace, welcome, self._spec, options, name) if trace else None
        if self._recording is not None:
            self._handlers = self._recording.wrap(self._handlers)
        self._links = Links(
            name,
            self,
            welcome.settings,
            Codec(self._spec, welcome.settings.client_frame_max),
            {**welcome.addresses, welcome.name: address},
            handlers=self._handlers,
            failed=self._fail,
            logger=logging.getLogger("gapless.client"),
        )
        place = ClientPlace(name, welcome.name, tuple(welcome.contacts))
        self._links.host.inhabit(self._spec.client(place, options))
        self._links.give(Start())

    def __repr__(self) -> str:
        return f"<Client {self.name} of network {self.network}>"

    # ---- calls --------------------------------------------------------------------------------------------

    async def advertise(self, filter: str) -> Advertisement:  # noqa: A002 - the word for it
        """Say what you will publish. Returns when the network knows, so that publications are not held back."""
        parse(filter)
        advertisement = Advertisement(self, self._new_name("a"), filter)
        stable = self._stable[advertisement.name] = self._future()
        try:
            self._call(Advertise(advertisement.name, filter))
            self._advertisements[advertisement.name] = advertisement
            await stable
        finally:
            self._stable.pop(advertisement.name, None)
        return advertisement

    async def unadvertise(self, advertisement: Advertisement) -> None:
        """Take an advertisement back."""
        if self._advertisements.pop(advertisement.name, None) is not None:
            self._call(Unadvertise(advertisement.name))

    async def subscribe(
        self,
        filter: str,  # noqa: A002
        *,
        on_full: OnFull | None = None,
        queue: int = 10_000,
    ) -> Subscription:
        """Ask for what matches. Returns when the starting cut is fixed: from there on, nothing is missed.

        `on_full` says what happens if you do not take the events (see `gapless.client.subscription`): `block`, the
        default where the protocol can hold back, or `fail` when more than `queue` of them wait.
        """
        parse(filter)
        policy = self._policy(on_full)
        if queue < 1:
            raise CallError(f"queue must be positive, but is {queue}")
        name = self._new_name("s")
        subscription = Subscription(self, name, filter, policy, queue, self._took)
        active = self._starting[name] = self._future()
        self._subscriptions[name] = subscription
        if self._recording is not None:
            self._recording.subscribes(name, filter)
        try:
            self._call(Subscribe(name, filter))
            await active
        except BaseException:
            self._drop(name)
            raise
        finally:
            self._starting.pop(name, None)
        if self._recording is not None:
            self._recording.returns(name)
        return subscription

    def _policy(self, on_full: OnFull | None) -> OnFull:
        if on_full is None:
            return "block" if self._spec.paces else "fail"
        if on_full not in ("block", "fail"):
            raise CallError(f"on_full is 'block' or 'fail', not {on_full!r}")
        if on_full == "block" and not self._spec.paces:
            raise CallError(f"protocol {self.protocol!r} cannot hold events back; subscribe with on_full='fail'")
        return on_full

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; returns when its ending cut is known."""
        name = subscription.name
        if self._subscriptions.get(name) is not subscription:
            return
        ended = self._ending.get(name)
        if ended is None:
            ended = self._ending[name] = self._future()
            subscription.release()
            self._took()
            self._call(Unsubscribe(name))
        await asyncio.shield(ended)

    async def publish(self, attributes: Mapping[str, Any], payload: bytes = b"") -> Event:
        """Publish an event. Returns when it is safe: it will reach every matching subscriber, whatever fails."""
        began_us = now_us()
        call, size = self._publication((attributes, payload))
        await self._wait_for_room()
        self._accepted.clear()
        self._note_began(began_us)
        self._call(call)
        event = self._accepted.pop()
        self._note_size(size)
        if self._spec.confirms:
            await self._confirmation(event.seq)
        return event

    async def publish_many(self, events: Iterable[Publication] | AsyncIterable[Publication]) -> int:
        """Publish events in order, as fast as the network takes them. Returns how many, when all are safe."""
        count = 0
        async for batch in _batches(events, max(1, min(PUBLISH_BATCH, BATCH_BYTES // self._settings.event_max))):
            began_us = now_us()
            checked = [self._publication(item) for item in batch]
            while checked:
                await self._wait_for_room()
                room = self._window - (self._published - self._confirmed) if self._spec.confirms else len(checked)
                self._note_began(began_us)
                self._publish_batch([call for call, _ in checked[:room]])
                self._note_size(sum(size for _, size in checked[:room]))
                count += len(checked[:room])
                checked = checked[room:]
        if self._spec.confirms and self._published > self._confirmed:
            await self._confirmation(self._published)
        return count

    def _publish_batch(self, calls: list[Publish]) -> None:
        if self._spec.takes_many:
            self._call(PublishMany(calls))
        else:
            for call in calls:
                self._call(call)
        self._accepted.clear()
        self._links.host.flush()

    async def close(self, *, leave: bool = True) -> None:
        """End all subscriptions, take all advertisements back, and disconnect.

        Without `leave` it only disconnects: the network keeps its place for a while, as if it were away.
        """
        if self._is_closed:
            return
        try:
            if leave and self._error is None:
                async with asyncio.timeout(LEAVE_S):
                    await self._leave()
        except TimeoutError:
            pass  # nobody there to say goodbye to; the session ends by itself
        finally:
            self._is_closed = True
            self._fail(ClosedError("the client is closed"))
            await self._links.close()
            if self._recording is not None:
                self._recording.close()

    async def _leave(self) -> None:
        for advertisement in list(self._advertisements.values()):
            await self.unadvertise(advertisement)
        await asyncio.gather(*(self.unsubscribe(subscription) for subscription in list(self._subscriptions.values())))
        while self._links.unsent or not getattr(self._links.host.node, "is_attached", True):
            await asyncio.sleep(0.005)

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

    def _future(self) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().create_future()

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

    def _publication(self, item: Publication) -> tuple[Publish, int]:
        """The call, with all that the network would choke on noticed here, and its size."""
        attributes, payload = item if isinstance(item, tuple) else (item, b"")
        size = len(payload)
        for name, value in attributes.items():
            kind = type(value)
            if kind is str:
                size += len(value)
            elif kind is int:
                if not INT_MIN <= value <= INT_MAX:
                    raise EventError(f"attribute {name!r} is {value}, which does not fit into 64 bits")
            elif kind is not float and kind is not bool:
                raise EventError(
                    f"attribute {name!r} is a {kind.__name__}; attributes are strings, integers, floats "
                    "and booleans (put anything else into the payload)"
                )
            if type(name) is not str:
                raise EventError(f"attribute {name!r} has a name that is no string")
        size += 16 * len(attributes)
        if size > self._settings.event_max:
            raise EventError(f"the event has {size:,} bytes, but {self._settings.event_max:,} is the limit")
        return Publish({**attributes}, payload if type(payload) is bytes else bytes(payload)), size

    def _note_began(self, began_us: int) -> None:
        """What is published next was asked for then: a trace counts from the call, not from when it leaves."""
        if self._recording is not None:
            self._recording.publishes(began_us)

    def _note_size(self, size: int) -> None:
        """So many bytes were published, up to the last event."""
        if self._spec.confirms:
            self._sizes.append((self._published, size))
            self._unsafe_bytes += size

    async def _wait_for_room(self) -> None:
        """Until fewer than a window of publications wait to become safe, or at least to leave."""
        if not self._spec.confirms:
            await self._links.wait_for_room()
            return
        while self._published - self._confirmed >= self._window or self._unsafe_bytes >= self._bytes_max:
            room = self._future()
            self._room.append(room)
            await room

    async def _confirmation(self, seq: int) -> None:
        if seq > self._confirmed:
            confirmed = self._future()
            self._confirmations.append((seq, confirmed))
            await confirmed

    def _took(self) -> None:
        """The application took something, or wants no more: tell the node, once a turn of the event loop."""
        if self._spec.paces and not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell_taken)

    def _tell_taken(self) -> None:
        self._is_telling = False
        waiting = [subscription.oldest() for subscription in self._subscriptions.values() if subscription.holds_back]
        taken = min((number for number in waiting if number is not None), default=self._deliveries + 1) - 1
        if taken > self._taken:
            self._taken = taken
            self._links.give(Consumed(taken))

    def _drop(self, name: str) -> None:
        """The application does not want the subscription after all."""
        if self._subscriptions.pop(name, None) is not None and self._error is None:
            self._links.give(Unsubscribe(name))
            self._took()

    # ---- effects ------------------------------------------------------------------------------------------

    def _on_published(self, effect: Published) -> None:
        self._published = effect.event.seq
        self._accepted.append(effect.event)

    def _on_confirmed(self, effect: Confirmed) -> None:
        self._confirmed = effect.seq
        while self._sizes and self._sizes[0][0] <= effect.seq:
            self._unsafe_bytes -= self._sizes.popleft()[1]
        waiting = self._confirmations
        while waiting and waiting[0][0] <= effect.seq:
            _set(waiting.popleft()[1])
        while self._room:
            _set(self._room.popleft())

    def _on_rejected(self, effect: Rejected) -> None:
        self._rejection = effect

    def _on_advertised(self, effect: Advertised) -> None:
        if effect.advertisement in self._stable:
            _set(self._stable[effect.advertisement])

    def _on_activated(self, effect: Activated) -> None:
        if effect.subscription in self._starting:
            _set(self._starting[effect.subscription])

    def _on_cut_fixed(self, effect: CutFixed) -> None:
        if effect.subscription in self._subscriptions:
            self._subscriptions[effect.subscription].cuts[effect.publisher] = effect.from_seq

    def _on_cuts_voided(self, effect: CutsVoided) -> None:
        if effect.subscription in self._subscriptions:
            self._subscriptions[effect.subscription].cuts.clear()

    def _on_deliver(self, effect: Deliver) -> None:
        self._deliveries += 1
        subscription = self._subscriptions.get(effect.subscription)
        if subscription is None:
            self._took()
            return
        if not subscription.put(self._deliveries, effect.event):
            asyncio.get_running_loop().call_soon(self._drop, effect.subscription)
        if not subscription.holds_back:
            self._took()

    def _on_ended(self, effect: Ended) -> None:
        subscription = self._subscriptions.pop(effect.subscription, None)
        asked = self._ending.pop(effect.subscription, None)
        if subscription is not None:
            subscription.last = effect.last_seq
            lost = CallError("the network ended the subscription: the client was away too long, or all brokers were")
            subscription.end(None if asked is not None else lost)
        if asked is not None:
            _set(asked)

    def _fail(self, error: BaseException) -> None:
        """Nothing goes on: tell everyone who waits."""
        if self._error is None:
            self._error = error if isinstance(error, GaplessError) else ClosedError(f"the client failed: {error!r}")
        waiting = [*self._stable.values(), *self._starting.values(), *self._ending.values(), *self._room]
        for future in [*waiting, *(future for _, future in self._confirmations)]:
            if not future.done():
                future.set_exception(self._error)
        for subscription in self._subscriptions.values():
            subscription.end(None if self._is_closed else self._error)

    # ---- what the links ask -------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """What we say to brokers."""
        return greeting(CLIENT, self.name, protocol=self.protocol)

    def answer(self, hello: Hello) -> Refusal:
        """Nobody dials a client."""
        return Refusal("name", "this is a client")

    def welcomed(self, welcome: Welcome) -> None:
        """A broker let us in."""

    def refused(self, peer: str, refusal: Refusal) -> None:
        """A broker does not want us. Others may; what no other would take either is the end."""
        if refusal.code in ("version", "protocol", "name", "malformed"):
            self._fail(ConnectError(f"broker {peer!r} refused us: {refusal.reason}"))

    def report(self) -> dict[str, Any]:
        """Nobody asks."""
        return {}

    @property
    def is_settled(self) -> bool:
        """Whether everything published so far is safe."""
        return not self._spec.confirms or self._published == self._confirmed

    @property
    def broker(self) -> str:
        """The broker that serves this client, or is asked to; empty if the protocol does not tell."""
        return str(getattr(self._links.host.node, "broker", ""))

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to a broker now. Calls may be made at any time; they wait for one."""
        return any(link.connection is not None for link in self._links.links.values())


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


async def _batches(events: Iterable[Any] | AsyncIterable[Any], most: int) -> AsyncIterable[list[Any]]:
    """The events in batches: of a source that has to be waited for, all that is there at a time."""
    if not isinstance(events, AsyncIterable):
        remaining = iter(events)
        while batch := list(islice(remaining, most)):
            yield batch
        return
    queue: asyncio.Queue[Any] = asyncio.Queue(most)
    collecting = asyncio.ensure_future(_collect(events, queue))
    try:
        while True:
            batch = [await queue.get()]
            while not queue.empty():
                batch.append(queue.get_nowait())
            end = batch.pop() if isinstance(batch[-1], _End) else None
            if batch:
                yield batch
            if end is not None:
                if end.error is not None:
                    raise end.error
                return
    finally:
        collecting.cancel()


class _End(NamedTuple):
    """Nothing more comes; `error` is why, if the source failed."""

    error: Exception | None


async def _collect(events: AsyncIterable[Any], queue: "asyncio.Queue[Any]") -> None:
    error = None
    try:
        async for event in events:
            await queue.put(event)
    except Exception as caught:
        error = caught
    await queue.put(_End(error))


class Connecting:
    """What `connect` returns: await it for a client, or use it with `async with`."""

    def __init__(self, url: str, name: str, timeout_s: float, trace: str | Path | None) -> None:
        self._trace = trace
        self._url = url
        self._name = name
        self._timeout_s = timeout_s
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def _connect(self) -> Client:
        address, welcome = await find_network(self._url, self._timeout_s)
        trace = str(self._trace or "") if self._trace is not None else _wanted_trace(welcome)
        self._client = Client(welcome, f"{self._name}-{secrets.token_hex(4)}", address=address, trace=trace)
        return self._client

    async def __aenter__(self) -> Client:
        return await self._connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._client is not None
        await self._client.close()


def _wanted_trace(welcome: Welcome) -> str:
    """Where the network wants a trace, if that is a place on this machine."""
    return welcome.trace if welcome.trace and Path(welcome.trace).is_dir() else ""


def connect(
    url: str, *, name: str = "client", timeout_s: float = 5.0, trace: str | Path | None = None
) -> Connecting:  # fmt: skip
    """Connect to a network by the addresses of one or more of its brokers: `gapless://host:port,host:port`.

    The first that answers tells where all others are, so one is enough; more help if it is down. `name` is the first
    part of the client's name, for logs and traces; what makes it unique is added. With `trace`, the client writes down
    what it does, in that directory (see `docs/TRACE_FORMAT.md`); without, it does so where the network asks it to.
    """
    return Connecting(url, name, timeout_s, trace)
