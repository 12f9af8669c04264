"""Chaos on a real network: broker processes are killed, frozen and started again while clients talk; then the judge.

Requests are published, and each is answered by other clients that were delivered it, so there are causes and effects
across publishers. Observers of everything come and go. What every client published and was delivered is written down by
the clients themselves, put together, and judged.
"""

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import msgspec

from gapless.checkers import Verdict, check
from gapless.client import Client, connect
from gapless.errors import GaplessError
from gapless.runtime.fleet import Fleet
from gapless.runtime.probe import ask_for_report
from gapless.trace import Trace, merge_parts

from .cut_proxy import CutProxy

__all__ = ["Chaos", "Outcome"]

QUIET_S = 1.5
SETTLE_S = 90.0


class Outcome(msgspec.Struct, frozen=True):
    """What became of it."""

    verdict: Verdict
    trace: Trace
    faults: list[str]
    failures: list[str]
    """What clients complained of; nothing, if all is well."""
    peak_kib: dict[str, int]


class Chaos:
    """One run on a fleet that is up."""

    def __init__(
        self, fleet: Fleet, directory: Path, *, seed: int, rate: float = 50.0, clients: int = 3,
        proxy: CutProxy | None = None,
    ) -> None:  # fmt: skip
        self._fleet = fleet
        self._proxy = proxy
        self._directory = directory
        self._dice = random.Random(seed)
        self._rate = rate
        self._count = clients
        self._clients: list[Client] = []
        self._last_delivery = time.monotonic()
        self._deliveries = 0
        self._failures: list[str] = []
        self._faults: list[str] = []
        self._peaks: dict[str, int] = {}
        self._is_publishing = True
        self._begun = 0

    async def run(
        self, seconds: float, *, faults: int = 0, kinds: tuple[str, ...] = ("kill", "freeze"), pause_s: float = 1.5
    ) -> Outcome:
        """Talk for so long, and until there were so many faults, of these kinds in turn; then settle and judge."""
        await self.wait_until_ready()
        talkers = [asyncio.create_task(self._request(number)) for number in range(self._count)]
        talkers += [asyncio.create_task(self._answer(number)) for number in range(self._count)]
        talkers += [asyncio.create_task(self._observe(number)) for number in range(self._count)]
        async with asyncio.timeout(SETTLE_S):
            while self._begun < len(talkers):
                await asyncio.sleep(0.02)
        end = time.monotonic() + seconds
        await asyncio.sleep(pause_s)
        while time.monotonic() < end or len(self._faults) < faults:
            await self._fault(kinds[len(self._faults) % len(kinds)], self._dice.choice(self._fleet.names))
            await asyncio.sleep(self._dice.uniform(0.5, 1.5) * pause_s)
        self._is_publishing = False
        await self._settle()
        for talker in talkers:
            talker.cancel()
        await asyncio.gather(*talkers, return_exceptions=True)
        for client in self._clients:
            await client.close(leave=False)
        trace = merge_parts(self._directory, quiesced=True)
        return Outcome(check(trace), trace, self._faults, self._failures, self._peaks)

    # ---- clients ------------------------------------------------------------------------------------------

    async def _client(self, name: str) -> Client:
        addresses = list(self._fleet.config.addresses.values())
        self._dice.shuffle(addresses)
        client = await connect(
            "gapless://" + ",".join(addresses), name=name, trace=self._directory, timeout_s=30.0
        )  # fmt: skip
        self._clients.append(client)
        return client

    async def _guarded(self, work: Any, who: str) -> None:
        try:
            await work
        except GaplessError as error:
            self._failures.append(f"{who}: {error}")

    async def _request(self, number: int) -> None:
        client = await self._client(f"asker{number}")
        await client.advertise(f"kind = 'request' AND asker = {number}")
        self._begun += 1
        serial = 0
        pending: set[asyncio.Task[None]] = set()
        while self._is_publishing:
            serial += 1
            event = {"kind": "request", "asker": number, "serial": serial, "topic": serial % 4}
            task = asyncio.create_task(self._guarded(client.publish(event), client.name))
            pending.add(task)
            task.add_done_callback(pending.discard)
            while len(pending) > 500:
                await asyncio.sleep(0.01)
            await asyncio.sleep(self._dice.expovariate(self._rate))
        await asyncio.gather(*pending)

    async def _answer(self, number: int) -> None:
        client = await self._client(f"answerer{number}")
        await client.advertise(f"kind = 'answer' AND answerer = {number}")
        subscription = await client.subscribe(f"kind = 'request' AND topic = {number % 4}")
        self._begun += 1
        async for event in subscription:
            self._noticed()
            facts = {"kind": "answer", "answerer": number, "to": event.id}
            await self._guarded(client.publish(facts), client.name)

    async def _observe(self, number: int) -> None:
        client = await self._client(f"observer{number}")
        filters = ["TRUE", "kind = 'answer'", "kind = 'request' OR answerer = 0", f"topic = {number % 4}"]
        self._begun += 1
        while self._is_publishing:
            subscription = await client.subscribe(self._dice.choice(filters))
            until = time.monotonic() + self._dice.uniform(1, 5)
            while self._is_publishing and time.monotonic() < until:
                try:
                    self._noticed(len(await asyncio.wait_for(subscription.take(), 0.5)))
                except TimeoutError:
                    continue
            if self._is_publishing:
                await subscription.close()
        last = await client.subscribe("TRUE")
        for each in (subscription, last):
            asyncio.get_running_loop().create_task(self._drain(each))

    async def _drain(self, subscription: Any) -> None:
        async for _ in subscription:
            self._noticed()

    def _noticed(self, count: int = 1) -> None:
        self._deliveries += count
        self._last_delivery = time.monotonic()

    # ---- faults -------------------------------------------------------------------------------------------

    async def _fault(self, kind: str, broker: str) -> None:
        fleet = self._fleet
        self._note_memory()
        self._faults.append(f"{kind} {broker}")
        if kind == "kill":
            fleet.kill(broker)
            await asyncio.sleep(self._dice.choice([0.0, 0.3, 2.0]))
            fleet.start(broker)
        elif kind == "cut":
            assert self._proxy is not None
            other = self._dice.choice(fleet.config.overlay.neighbours(broker))
            self._faults[-1] += f"-{other}"
            self._proxy.cut(broker, other)
            await asyncio.sleep(self._dice.choice([0.0, 0.3, 2.5]))
            self._proxy.heal(broker, other)
        else:
            fleet.freeze(broker)
            await asyncio.sleep(self._dice.choice([0.3, 1.0, 2.5]))
            fleet.thaw(broker)
        await self.wait_until_ready()

    def _note_memory(self) -> None:
        for name in self._fleet.names:
            self._peaks[name] = max(self._peaks.get(name, 0), self._fleet.memory_kib(name)[1])

    async def wait_until_ready(self) -> None:
        """Until every broker takes part, and has been taken in."""
        deadline = time.monotonic() + SETTLE_S
        for name, address in self._fleet.config.addresses.items():
            while True:
                try:
                    report = await ask_for_report(address, timeout_s=1.0)
                except (OSError, TimeoutError, GaplessError):
                    report = {}
                overview = report.get("overview", {})
                if report.get("ready") and overview.get("settled", True) and not overview.get("stand_ins"):
                    break
                assert self._fleet.exit_code(name) is None, str(self._fleet.complain(name))
                assert time.monotonic() < deadline, f"{name} does not come back: {report}"
                await asyncio.sleep(0.05)

    async def _settle(self) -> None:
        """Until nothing has been delivered for a while, and everything published is safe."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() - self._last_delivery < QUIET_S or not all(c.is_settled for c in self._clients):
            assert time.monotonic() < deadline, "it does not come to rest"
            await asyncio.sleep(0.05)
        self._note_memory()
