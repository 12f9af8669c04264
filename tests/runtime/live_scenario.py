"""Runs a scenario file on a real network: the same clients, calls, replies and crashes, over TCP on loopback.

Time passes `speed` times as fast as on the wall clock. Latencies are real, so only results that do not depend on them
can be compared with the simulator: see `test_conformance`.
"""

import asyncio
from pathlib import Path
from typing import Any

from gapless.client import Advertisement, Client, Subscription
from gapless.client.bootstrap import find_network
from gapless.errors import EventError
from gapless.events import Event
from gapless.protocol import Deliver, Publish
from gapless.simulator import Scenario
from gapless.simulator import scenario as parts
from gapless.simulator.networks import overlay_of
from gapless.simulator.replies import Replies, ReplyRule
from gapless.trace import Trace, merge_parts

from .local import Local, local

__all__ = ["run_live"]

QUIET_S = 0.5


class _Run:
    def __init__(self, scenario: Scenario, network: Local, directory: Path, speed: float, patient: bool) -> None:
        self._scenario = scenario
        self._patient = patient
        self._network = network
        self._directory = directory
        self._speed = speed
        self._clients: dict[str, Client] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._advertisements: dict[str, Advertisement] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._replies = Replies(scenario.run.seed, self._publish_later)
        self._turns: dict[str, asyncio.Lock] = {}
        self._publishing: list[asyncio.Task[Any]] = []
        self._last_act = 0.0
        self.names: dict[str, str] = {}
        """The name in the scenario of each subscription."""

    async def run(self) -> Trace:
        for reply in self._scenario.replies:
            delay_us = round(reply.delay_ms * 1000)
            self._replies.add(
                ReplyRule(
                    reply.client, reply.attributes, reply.subscription, reply.probability, reply.at_most, delay_us
                )
            )
        for client in self._scenario.clients:
            await self._join(client)
        loop = asyncio.get_running_loop()
        start = loop.time()
        for row in sorted([*self._scenario.actions, *self._scenario.faults], key=lambda row: row.at_ms):
            await asyncio.sleep(start + row.at_ms / 1000 / self._speed - loop.time())
            began = loop.time()
            await self._act(row)
            start += loop.time() - began  # the scenario's clock is paused while it waits for an action
        await self._wait_until_idle()
        for joined in self._clients.values():
            await joined.close(leave=False)
        for task in self._tasks:
            task.cancel()
        return merge_parts(self._directory, quiesced=True)

    async def _join(self, client: parts.Client) -> None:
        assert client.join_ms == 0
        address, welcome = await find_network(self._network.at(client.broker), 20)
        self._clients[client.name] = Client(welcome, client.name, address=address, trace=str(self._directory))

    async def _act(self, row: Any) -> None:
        if self._patient and isinstance(row, parts.SubscribeAction | parts.UnsubscribeAction):
            await asyncio.gather(*self._publishing)
            await self._wait_until_idle()
        match row:
            case parts.AdvertiseAction() if self._patient:
                await self._advertise(row)
            case parts.AdvertiseAction():
                self._start(self._advertise(row))
            case parts.UnadvertiseAction():
                await self._advertisements.pop(row.advertisement).close()
            case parts.SubscribeAction() if self._patient:
                self._start(self._listen(row, await self._subscribe(row)))
            case parts.SubscribeAction():
                self._start(self._subscribe_and_listen(row))
            case parts.UnsubscribeAction():
                await self._subscriptions.pop(row.subscription).close()
            case parts.PublishAction():
                self._publishing.append(self._start(self._publish(row)))
            case parts.Crash():
                await self._network.crash(row.broker)
            case parts.Restart():
                self._start(self._network.start(row.broker))
            case _:
                raise AssertionError(f"no way to do {row!r} here")

    def _start(self, work: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        return task

    async def _advertise(self, row: parts.AdvertiseAction) -> None:
        self._advertisements[row.advertisement] = await self._clients[row.client].advertise(row.filter)

    async def _subscribe(self, row: parts.SubscribeAction) -> Subscription:
        subscription = await self._clients[row.client].subscribe(row.filter)
        self._subscriptions[row.subscription] = subscription
        self.names[subscription.id] = row.subscription
        return subscription

    async def _subscribe_and_listen(self, row: parts.SubscribeAction) -> None:
        await self._listen(row, await self._subscribe(row))

    async def _listen(self, row: parts.SubscribeAction, subscription: Subscription) -> None:
        async for event in subscription:
            self._note(row.client, event, row.subscription)

    def _note(self, client: str, event: Event, subscription: str) -> None:
        self._last_act = asyncio.get_running_loop().time()
        self._replies.delivered(client, Deliver(event, subscription))

    async def _publish(self, row: parts.PublishAction) -> None:
        """Publish with one client at a time, so that the numbers of events do not depend on the load of the machine."""
        async with self._turns.setdefault(row.client, asyncio.Lock()):
            for _ in range(row.count):
                self._start(self._clients[row.client].publish(row.attributes))
                await asyncio.sleep(row.every_ms / 1000 / self._speed)

    def _publish_later(self, client: str, call: Publish, delay_us: int) -> None:
        async def later() -> None:
            await asyncio.sleep(delay_us / 1e6 / self._speed)
            await self._clients[client].publish(call.attributes)

        self._start(later())

    async def _wait_until_idle(self) -> None:
        """Wait until nothing has been delivered, confirmed or moved for a while."""
        loop = asyncio.get_running_loop()
        self._last_act = loop.time()
        async with asyncio.timeout(40):
            while loop.time() - self._last_act < QUIET_S:
                if not self._is_calm():
                    self._last_act = loop.time()
                await asyncio.sleep(0.02)
        for task in [task for task in self._tasks if task.done()]:
            if not isinstance(task.exception(), EventError):  # rejected, as in the simulator
                task.result()

    def _is_calm(self) -> bool:
        """Return whether all publications are confirmed, all clients have sessions that have caught up, and no broker
        is being replaced."""
        clients = self._clients.values()
        # A client may take a second to notice that its broker has crashed.
        at_home = (
            (client.is_connected and client.broker in self._network.brokers) or not client.broker for client in clients
        )
        overviews = [broker.report()["overview"] for broker in self._network.brokers.values()]
        are_served = all("sessions" not in overview for overview in overviews) or (
            sum(overview["sessions"] for overview in overviews) >= len(clients)
            and not any(overview["deferred"] or overview["history"]["reads"] for overview in overviews)
        )
        return (
            all(client.is_all_confirmed for client in clients)
            and all(at_home)
            and are_served
            and not any(overview.get("handovers") for overview in overviews)
        )


async def run_live(
    scenario: Scenario, directory: Path, *, speed: float = 1.0, patient: bool = False
) -> tuple[Trace, dict[str, str]]:
    """Run a scenario over TCP. Return the clients' trace, and the scenario's names of subscriptions.

    A `patient` run starts and ends subscriptions while the network is quiet, so the result does not depend on other
    load.
    """
    network = scenario.network
    options = scenario.protocol.options
    async with local(overlay_of(network), f=network.f, protocol=scenario.protocol.name, **options) as up:
        running = _Run(scenario, up, directory, speed, patient)
        return await running.run(), running.names
