"""Chaos on a real network: broker processes are killed, paused, partitioned and restarted while clients exchange
events.

Each request is answered by another client that received it, and the requester publishes a third event for each answer:
causes and effects across three publications and two clients. Observers subscribe and unsubscribe, and visitors come,
go, and publish a little. Readers read older history, and stop somewhere. Faults strike up to `at_once` brokers of a
neighbourhood at the same time, or all of them (`chaos_faults`). Every client records its publications and deliveries,
and the recordings are merged and checked.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gapless.client import Client, Subscription, connect
from gapless.errors import GaplessError, SkippedError
from gapless.runtime.fleet import Fleet

from .chaos_faults import Faults
from .cut_proxy import CutProxyProcess

__all__ = ["Chaos", "Load", "Outcome"]

QUIET_S = 1.5
SETTLE_S = 90.0
PENDING_MAX = 500
"""The maximum number of unconfirmed publications of a client; it waits when there are more."""
LATE_MAX_S = 1.0
"""The maximum delay that a requesting client makes up for."""
MEMORY_S = 0.5
READ_BACK = 20
"""The number of positions that a reader remembers."""


class Load(msgspec.Struct, frozen=True):
    """The number of clients of each kind, and their rates."""

    askers: int = 3
    rate: float = 40.0
    """Requests per second of each requesting client; each causes two more events."""
    answerers: int = 3
    observers: int = 3
    visitors: int = 0
    readers: int = 0
    """The number of clients that read history."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a run, except for the verdict."""

    faults: list[str]
    failures: list[str]
    """The errors of clients; empty if there were none."""
    peak_kib: dict[str, int]
    """The peak memory of each broker, over all of its processes."""
    deliveries: int
    subscriptions: int
    longest_turns: dict[str, tuple[float, str]]
    """The longest turn of each broker's event loop in milliseconds, with its cause."""


class Chaos:
    """One run on a fleet that is up."""

    def __init__(
        self,
        fleet: Fleet,
        directory: Path,
        *,
        seed: int,
        load: Load | None = None,
        proxy: CutProxyProcess | None = None,
        make_faults: type[Faults] = Faults,
    ) -> None:
        self._fleet = fleet
        self._directory = directory
        self._dice = random.Random(seed)
        self._faults = make_faults(fleet, proxy, self._dice, self._note_fault)
        self._load = load or Load()
        self._clients: list[Client] = []
        self._last_delivery = time.monotonic()
        self._failures: list[str] = []
        self._peaks: dict[str, int] = {}
        self._turns: dict[str, tuple[float, str]] = {}
        self._is_publishing = True
        self._begun = 0
        self._subscriptions = 0
        self._subscribing = 0
        """The number of clients that wait for `subscribe`."""
        self.deliveries = 0
        """The number of deliveries so far."""
        self.faults: list[str] = []
        """Descriptions of the faults so far."""

    async def run(
        self,
        seconds: float,
        *,
        faults: int = 0,
        deliveries: int = 0,
        kinds: tuple[str, ...] = ("kill", "freeze"),
        pause_s: float = 1.5,
        at_once: int = 1,
        told: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Run the load for the given time, and until there were enough faults and deliveries; then wait until the
        network is quiet.

        The kinds of faults take turns, and at most the given number happens at once.
        """
        await self._fleet.until_whole(SETTLE_S)
        load = self._load
        talkers = [asyncio.create_task(self._ask(number)) for number in range(load.askers)]
        talkers += [asyncio.create_task(self._answer(number)) for number in range(load.answerers)]
        talkers += [asyncio.create_task(self._observe(number)) for number in range(load.observers)]
        async with asyncio.timeout(SETTLE_S):
            while self._begun < len(talkers):
                _raise_failure(talkers)
                await asyncio.sleep(0.02)
        visitors = [asyncio.create_task(self._visit(number)) for number in range(load.visitors)]
        visitors += [asyncio.create_task(self._read(number)) for number in range(load.readers)]
        watching = asyncio.create_task(self._watch(told))
        try:
            end = time.monotonic() + seconds
            await asyncio.sleep(pause_s)
            while time.monotonic() < end or len(self.faults) < faults or self.deliveries < deliveries:
                _raise_failure([*talkers, *visitors])
                place, count = len(self.faults), self._dice.randint(1, at_once)
                await self._faults.strike([kinds[(place + more) % len(kinds)] for more in range(count)])
                await self._fleet.until_whole(SETTLE_S)
                await asyncio.sleep(self._dice.uniform(0.5, 1.5) * pause_s)
            self._is_publishing = False
            async with asyncio.timeout(SETTLE_S):
                await asyncio.gather(*visitors)
            await self._wait_until_idle()
            _raise_failure(talkers)
        finally:
            self._is_publishing = False  # a task may miss its cancellation, but not this flag
            tasks = [*talkers, *visitors, watching]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for client in self._clients:
                await client.close(leave=False)
        return Outcome(
            self.faults,
            self._failures,
            self._peaks,
            self.deliveries,
            self._subscriptions,
            dict(sorted(self._turns.items())),
        )

    # ---- clients ------------------------------------------------------------------------------------------

    async def _client(self, name: str) -> Client:
        addresses = list(self._fleet.config.addresses.values())
        self._dice.shuffle(addresses)
        url = "gapless://" + ",".join(addresses)
        client = await connect(url, name=name, trace=self._directory, timeout_s=30.0)
        self._clients.append(client)
        return client

    async def _subscribe(self, client: Client, text: str) -> Subscription:
        self._subscriptions += 1
        self._subscribing += 1
        try:
            return await client.subscribe(text)
        finally:
            self._subscribing -= 1

    async def _guarded(self, work: Any, who: str) -> None:
        try:
            await work
        except GaplessError as error:
            self._failures.append(f"{who}: {error}")

    async def _ask(self, number: int) -> None:
        client = await self._client(f"asker{number}")
        await client.advertise(f"kind IN ('request', 'settled') AND asker = {number}")
        answers = await self._subscribe(client, f"kind = 'answer' AND asker = {number}")
        settling = asyncio.create_task(self._react(client, answers, {"kind": "settled", "asker": number}))
        self._begun += 1
        serial = 0
        pending: set[asyncio.Task[None]] = set()
        due = time.monotonic()
        try:
            while self._is_publishing:
                serial += 1
                topic = serial % max(1, self._load.answerers)
                event = {"kind": "request", "asker": number, "serial": serial, "topic": topic}
                task = asyncio.create_task(self._guarded(client.publish(event), client.name))
                pending.add(task)
                task.add_done_callback(pending.discard)
                while len(pending) > PENDING_MAX:
                    await asyncio.sleep(0.01)
                due = max(due + self._dice.expovariate(self._load.rate), time.monotonic() - LATE_MAX_S)
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            await asyncio.gather(*pending, settling)
        finally:
            settling.cancel()

    async def _answer(self, number: int) -> None:
        client = await self._client(f"answerer{number}")
        await client.advertise(f"kind = 'answer' AND answerer = {number}")
        requests = await self._subscribe(client, f"kind = 'request' AND topic = {number}")
        self._begun += 1
        await self._react(client, requests, {"kind": "answer", "answerer": number})

    async def _react(self, client: Client, subscription: Subscription, facts: dict[str, Any]) -> None:
        """Publish an event caused by each delivered event, until the subscription ends."""
        while events := await subscription.take():
            self._noticed(len(events))
            effects = [
                {**facts, "asker": event.attributes["asker"], "serial": event.attributes["serial"]} for event in events
            ]
            await self._guarded(client.publish_many(effects), client.name)

    async def _observe(self, number: int) -> None:
        client = await self._client(f"observer{number}")
        filters = ["TRUE", "kind = 'answer'", "kind = 'request' OR answerer = 0", f"asker = {number}", "serial > 10"]
        self._begun += 1
        subscription = await self._subscribe(client, "TRUE")
        while self._is_publishing:
            await self._take(subscription, self._dice.uniform(1, 5))
            if self._is_publishing:
                await subscription.close()
                subscription = await self._subscribe(client, self._dice.choice(filters))
        last = await self._subscribe(client, "TRUE")
        await asyncio.gather(self._drain(subscription), self._drain(last))

    async def _visit(self, number: int) -> None:
        """Connect, publish a little, read for a while and leave, repeatedly."""
        while self._is_publishing:
            client = await self._client(f"visitor{number}")
            subscription = await self._subscribe(client, "kind IN ('request', 'greeting')")
            await client.advertise(f"kind = 'greeting' AND visitor = {number}")
            for serial in range(self._dice.randint(1, 5)):
                await client.publish({"kind": "greeting", "visitor": number, "serial": serial})
                await self._take(subscription, self._dice.uniform(0.5, 2))
            await subscription.close()
            await client.close()
            self._clients.remove(client)

    async def _read(self, number: int) -> None:
        """Read older history repeatedly, completely or in part."""
        client = await self._client(f"reader{number}")
        positions = [await client.position()]
        while self._is_publishing:
            await asyncio.sleep(self._dice.uniform(0.5, 3))
            positions = [*positions[-READ_BACK:], await client.position()]
            self._subscriptions += 1
            reading = await client.read("kind <> 'settled'", since=self._dice.choice(positions))
            if self._dice.random() < 0.7:
                await self._drain(reading)
            else:
                await self._take(reading, self._dice.uniform(0, 1))
                await reading.close()

    async def _take(self, subscription: Subscription, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._is_publishing and time.monotonic() < until:
            with suppress(TimeoutError, SkippedError):
                self._noticed(len(await asyncio.wait_for(subscription.take(), 0.5)))

    async def _drain(self, subscription: Subscription) -> None:
        while True:
            with suppress(SkippedError):  # reported and recorded, so the checker knows
                events = await subscription.take()
                if not events:
                    return
                self._noticed(len(events))

    def _noticed(self, count: int) -> None:
        self.deliveries += count
        self._last_delivery = time.monotonic()

    # ---- watching -----------------------------------------------------------------------------------------

    def _note_fault(self, told: str) -> None:
        self.faults.append(told)
        self._note_memory()

    async def _watch(self, told: Callable[[], None]) -> None:
        while True:
            self._note_memory()
            told()
            await self._note_turns()
            await asyncio.sleep(MEMORY_S)

    async def _reports(self) -> dict[str, Any]:
        """Return the report of each broker; empty for brokers that do not answer."""
        reports = await asyncio.gather(*(self._fleet.report(name) for name in self._fleet.names))
        return dict(zip(self._fleet.names, reports, strict=True))

    async def _note_turns(self) -> None:
        """Record the longest turns of the brokers that answer; a killed broker loses those since the last query."""
        for name, report in (await self._reports()).items():
            if report:
                turn = (report["turns"]["longest_ms"], report["turns"]["what"])
                self._turns[name] = max(turn, self._turns.get(name, turn))

    def _note_memory(self) -> None:
        for name in self._fleet.names:
            self._peaks[name] = max(self._peaks.get(name, 0), self._fleet.memory_kib(name)[1])

    async def _lagging_clients(self) -> set[str]:
        reports = await self._reports()
        behind = {client for report in reports.values() for client in report.get("overview", {}).get("lagging", ())}
        return behind & {client.name for client in self._clients}

    async def _wait_until_idle(self) -> None:
        """Wait until nothing has been delivered for a while, all publications are confirmed, all calls have returned,
        and no client lags: a broker that has just returned may need longer to read its disk than the others are quiet.
        """
        deadline = time.monotonic() + SETTLE_S
        behind: set[str] = set()
        while (
            time.monotonic() - self._last_delivery < QUIET_S
            or self._subscribing
            or not all(client.is_all_confirmed for client in self._clients)
            or (behind := await self._lagging_clients())
        ):
            waiting = f"{self._subscribing} wait for subscribe(), {', '.join(sorted(behind)) or 'nobody'} lags"
            assert time.monotonic() < deadline, f"it does not come to rest: {waiting}"
            await asyncio.sleep(0.05)
        self._note_memory()
        await self._note_turns()


def _raise_failure(tasks: list["asyncio.Task[None]"]) -> None:
    """Raise the error of a client's task, if one failed."""
    for task in tasks:
        if task.done() and not task.cancelled():
            task.result()
