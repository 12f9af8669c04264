"""Runs the live part of `gapless demo`: seven broker processes, their clients, a SIGKILL, and the measurements.

Orders cause invoices and invoices cause parcels, each published by another client as an answer. Subscriptions start and
end all the time. The clients write the events to a trace. This module records facts that a trace does not contain:
which broker served each client, how long confirmations took, and when the killed broker was replaced and rejoined.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import msgspec

from gapless.client import Client, Subscription, connect
from gapless.errors import ConnectError
from gapless.overlay import binary
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.settings import RuntimeSettings

__all__ = ["ASKED", "HOP_MS", "MOVING", "PLACES", "VICTIM", "F", "LiveRun", "demo_network", "run_live"]

HOP_MS = 25.0
SUSPECT_MS = 3_000.0
"""The suspicion timeout, longer than the default so that a busy machine causes no false suspicions."""
F = 1
VICTIM = "b1"
MOVING = "kiosk"
"""The client whose broker is killed."""
PLACES = {
    "shop": "b3", MOVING: VICTIM, "billing": "b4", "audit": "b5", "board": "b5", "shipping": "b6", "alert": "b6",
    "guest": "b2",
}  # fmt: skip
"""The broker at which each client connects."""
ASKED = {
    "shipping": "kind = 'invoice'",
    "alert": "kind = 'order' AND eur > 100",
    "board": "kind = 'parcel'",
}
"""The filters of the subscriptions whose latency is shown, by client. The first one is not covered, the second is
covered at a neighbouring broker, and the third is covered at the same broker."""
AGAIN = 5
"""The number of times each of these subscriptions is made. The demo shows the median."""
GUEST_FILTERS = ("kind = 'order'", "kind IN ('invoice', 'parcel')", "eur < 100", "TRUE")
ORDERS_A_SECOND = 30.0
QUIET_S = 1.0
PATIENCE_S = 60.0
"""The timeout of each step, long enough for slow machines."""
Tell = Callable[[str], None]


class LiveRun(msgspec.Struct, frozen=True):
    """The measurements of the live part, besides the trace."""

    brokers: dict[str, str]
    """For each client, the broker that served it at the end."""
    moved_to: str
    """The broker that served the moving client while its original broker was down."""
    cuts: dict[str, dict[str, int]]
    """The starting cut of each subscription shown, by client."""
    confirmed_ms: list[float]
    """The time until each order was confirmed while all brokers were running."""
    replacement: str
    replaced_ms: float
    """Time from the kill until another broker took over."""
    back_ms: float
    """Time from the restart of the killed broker until it had rejoined."""
    silent_ms: float
    """The longest time around the kill without a delivery to the moving client."""
    published_before: int
    published_after: int
    """Number of orders that the moving client published after the kill."""
    peak_mib: float
    """The peak memory use of any broker, in MiB."""


def demo_network() -> NetworkConfig:
    """Return the configuration of the network of seven brokers."""
    settings = RuntimeSettings(delay_ms=HOP_MS, suspect_ms=SUSPECT_MS)
    return local_network(binary(2), f=F, name="shop", runtime=settings)


async def run_live(fleet: Fleet, trace: Path, announce: Tell) -> LiveRun:
    """Run all steps. Return the measurements after all events have been delivered."""
    live = _Live(fleet, trace, announce)
    try:
        async with asyncio.timeout(4 * PATIENCE_S):
            return await live.run()
    except TimeoutError:
        raise ConnectError(f"the network took too long: {live.stage}; is the machine very busy?") from None
    finally:
        await live.close()


class _Live:
    def __init__(self, fleet: Fleet, trace: Path, announce: Tell) -> None:
        self.stage = ""
        self._fleet = fleet
        self._trace = trace
        self._announce = announce
        self._clients: dict[str, Client] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_open = True
        self._deliveries = 0
        self._last = time.monotonic()
        self._kiosk_times: list[float] = []
        self._confirmed: list[tuple[float, float]] = []
        self._orders: list[float] = []
        """The times at which the moving client published orders."""

    async def run(self) -> LiveRun:
        fleet = self._fleet
        self._say("starting seven brokers")
        fleet.start_all()
        await fleet.until_whole(PATIENCE_S)
        self._say("clients connect, advertise and subscribe")
        await self._connect()
        cuts = await self._subscribe()
        self._say("publishing orders, invoices and parcels")
        await asyncio.sleep(2.0)
        killed = time.monotonic()
        self._say(f"killing broker {VICTIM}")
        fleet.kill(VICTIM)
        replacement = await self._wait_for_replacement()
        replaced_ms = (time.monotonic() - killed) * 1000
        self._say(f"{replacement} replaces {VICTIM}")
        await self._wait_until(
            lambda: self._client(MOVING).broker != VICTIM and max(self._kiosk_times, default=0.0) > killed
        )
        moved_to = self._client(MOVING).broker
        await asyncio.sleep(1.5)
        self._say(f"restarting broker {VICTIM}")
        fleet.start(VICTIM)
        started = time.monotonic()
        await fleet.until_whole(PATIENCE_S)
        back_ms = (time.monotonic() - started) * 1000
        await self._wait_until(lambda: self._client(MOVING).broker == VICTIM)
        await asyncio.sleep(1.0)
        self._say("waiting until all events are delivered")
        peak = max(fleet.memory_kib(name)[1] for name in fleet.names) / 1024
        self._is_open = False
        await self._wait_until_idle()
        times = [killed, *(moment for moment in self._kiosk_times if moment > killed)]
        return LiveRun(
            brokers={name: client.broker for name, client in self._clients.items()},
            moved_to=moved_to,
            cuts=cuts,
            confirmed_ms=[taken * 1000 for moment, taken in self._confirmed if moment < killed - 0.5],
            replacement=replacement,
            replaced_ms=replaced_ms,
            back_ms=back_ms,
            silent_ms=max((later - earlier) * 1000 for earlier, later in pairwise(times)),
            published_before=sum(moment <= killed for moment in self._orders),
            published_after=sum(moment > killed for moment in self._orders),
            peak_mib=peak,
        )

    async def close(self) -> None:
        """Close all clients."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients.values():
            await client.close(leave=False)

    def _say(self, stage: str) -> None:
        self.stage = stage
        self._announce(stage)

    # ---- clients ------------------------------------------------------------------------------------------

    def _client(self, name: str) -> Client:
        return self._clients[name]

    async def _connect(self) -> None:
        for name, broker in PLACES.items():
            url = f"gapless://{self._fleet.config.addresses[broker]}"
            self._clients[name] = await connect(url, name=name, trace=self._trace, timeout_s=PATIENCE_S)
        offers = {"shop": "order", MOVING: "order", "billing": "invoice", "shipping": "parcel"}
        await asyncio.gather(*(self._client(name).advertise(f"kind = '{kind}'") for name, kind in offers.items()))

    async def _subscribe(self) -> dict[str, dict[str, int]]:
        """Make all subscriptions, starting with the clients that answer events. Return the starting cuts that are
        shown."""
        cuts = {}
        orders = await self._client("billing").subscribe("kind = 'order'")
        invoices = await self._again("shipping")
        cuts["shipping"] = dict(invoices.starting_cut)
        self._start(self._answer("billing", orders, "invoice"))
        self._start(self._answer("shipping", invoices, "parcel"))
        self._start(self._order("shop", 40))
        self._start(self._order(MOVING, 250))
        await asyncio.sleep(0.5)
        everything = await self._client("audit").subscribe("kind IN ('order', 'invoice', 'parcel')")
        self._start(self._take(everything))
        for name in ("alert", "board"):
            subscription = await self._again(name)
            cuts[name] = dict(subscription.starting_cut)
            self._start(self._take(subscription))
        own = await self._client(MOVING).subscribe("kind = 'parcel' AND eur > 100")
        self._start(self._take(own, self._kiosk_times))
        self._start(self._resubscribe_repeatedly())
        return cuts

    async def _again(self, name: str) -> Subscription:
        """Subscribe several times with the filter of a client, and keep the last subscription."""
        client = self._client(name)
        for _ in range(AGAIN - 1):
            await (await client.subscribe(ASKED[name])).close()
        return await client.subscribe(ASKED[name])

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _order(self, name: str, eur: int) -> None:
        client = self._client(name)
        async with asyncio.TaskGroup() as pending:
            while self._is_open:
                pending.create_task(self._publish(client, {"kind": "order", "eur": eur}))
                if name == MOVING:
                    self._orders.append(time.monotonic())
                await asyncio.sleep(1 / ORDERS_A_SECOND)

    async def _publish(self, client: Client, event: dict[str, Any]) -> None:
        start = time.monotonic()
        await client.publish(event)
        self._confirmed.append((start, time.monotonic() - start))

    async def _answer(self, name: str, subscription: Subscription, kind: str) -> None:
        while events := await subscription.take():
            self._noticed(len(events))
            answers = [{"kind": kind, "eur": event.attributes["eur"]} for event in events]
            await self._client(name).publish_many(answers)

    async def _take(self, subscription: Subscription, moments: list[float] | None = None) -> None:
        while events := await subscription.take():
            self._noticed(len(events))
            if moments is not None:
                moments.append(time.monotonic())

    async def _resubscribe_repeatedly(self) -> None:
        for text in cycle(GUEST_FILTERS):
            subscription = await self._client("guest").subscribe(text)
            taking = asyncio.create_task(self._take(subscription))
            await asyncio.sleep(0.3)
            await subscription.close()
            await taking
            if not self._is_open:
                return

    def _noticed(self, count: int) -> None:
        self._deliveries += count
        self._last = time.monotonic()

    # ---- waiting ------------------------------------------------------------------------------------------

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._look_at_tasks()
            await asyncio.sleep(0.02)

    def _look_at_tasks(self) -> None:
        """Raise the error of any client task that has failed."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def _wait_until_idle(self) -> None:
        """Wait until all publications are confirmed and deliveries have paused."""
        await self._wait_until(
            lambda: time.monotonic() - self._last > QUIET_S and all(c.is_all_confirmed for c in self._clients.values())
        )

    async def _wait_for_replacement(self) -> str:
        neighbour = self._fleet.config.overlay.neighbours(VICTIM)[0]
        while True:
            overview = (await self._fleet.report(neighbour)).get("overview", {})
            if VICTIM in overview.get("replaced_by", {}) and not overview["handovers"]:
                return str(overview["replaced_by"][VICTIM])
            await asyncio.sleep(0.02)
