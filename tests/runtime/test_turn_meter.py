"""The longest turn of an event loop is measured with its cause, and turns stay short under load."""

import asyncio
import time
from typing import Any

from gapless.client import connect
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocol import Input, Received, TimerFired
from gapless.protocols.gapless.client_messages import ClientPublish, Detach
from gapless.protocols.gapless.link_messages import LinkMessage, Wave
from gapless.protocols.gapless.messages import Frame
from gapless.runtime.event_loop import run
from gapless.runtime.logs import logger_of
from gapless.runtime.turn_meter import LONG_MS, TurnMeter

from .local import local
from .logged import logged


def work(milliseconds: float) -> None:
    until = time.thread_time() + milliseconds / 1000
    while time.thread_time() < until:
        pass


def test_the_longest_turn_is_known_with_the_longest_of_its_pieces() -> None:
    async def main() -> None:
        meter = TurnMeter(asyncio.get_running_loop(), logger_of("b0"))
        messages: list[Any] = [
            ClientPublish(1, EventRun.of([Event("ann", 1, {})])),
            ClientPublish(1, EventRun.of([Event("ann", 2, {})])),
        ]
        messages.append(Frame(0, 0, 1, 0, 0, LinkMessage(1, Wave(1, 0))))
        for milliseconds, who, what in ((3, "ann", messages), (15, "ann", messages), (2, "", TimerFired("wave"))):
            begun = meter.begin()
            inner = meter.begin()
            work(milliseconds)
            meter.end(inner, "nobody", "what is inside counts once")
            meter.end(begun, who, what)
        await asyncio.sleep(0)
        assert 20 <= meter.longest_ms < 40
        assert meter.longest_by_clock_ms >= meter.longest_ms
        assert meter.what == "ClientPublish of 1 events × 2, Frame/LinkMessage/Wave from ann"
        begun = meter.begin()
        time.sleep(0.05)
        meter.end(begun, "", TimerFired("asleep"))
        await asyncio.sleep(0)
        assert "asleep" not in meter.what, "a machine that is busy with other things makes no turn long"
        assert meter.long == 0

    run(main())


def test_a_turn_that_is_too_long_is_counted_and_reported() -> None:
    async def main() -> None:
        meter = TurnMeter(asyncio.get_running_loop(), logger_of("b0"))
        with logged() as log:
            for _ in range(2):
                begun = meter.begin()
                work(LONG_MS + 5)
                meter.end(begun, "", TimerFired("wave"))
                await asyncio.sleep(0)
        assert meter.long == 2
        [said] = log.of("b0", "a turn of the event loop took 1")
        assert said.endswith("ms: TimerFired(key='wave')")

    run(main())


def test_a_batch_too_large_for_one_turn_is_processed_in_several_in_order() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url, name="ann") as ann:
            await ann.advertise("TRUE")
            broker = network.brokers["b0"]
            node = broker.links.host.node
            assert node is not None
            step = node.step
            received: list[int] = []

            def slow(item: Input, now: int) -> Any:
                if isinstance(item, Received) and isinstance(item.message, ClientPublish):
                    work(30)
                    received.extend(event.seq for event in item.message.events)
                return step(item, now)

            node.step = slow  # type: ignore[method-assign]
            async with asyncio.timeout(60):
                await asyncio.gather(*(ann.publish({"n": number}) for number in range(20)))
            assert received == list(range(1, 21))
            turns = broker.report()["turns"]
            assert 30 <= turns["longest_ms"] <= LONG_MS
            assert "ClientPublish of 1 events" in turns["what"]

    run(main())


def test_a_connection_that_ends_within_a_batch_affects_no_other() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url, name="ann") as ann:
            await ann.advertise("TRUE")
            links = network.brokers["b0"].links
            link = links.links[ann.name]
            connection = link.connection
            assert connection is not None
            connection.backlog = [Detach(99)]
            links.turns.wait(connection)
            connection.abort()
            async with asyncio.timeout(20):
                await ann.publish({"n": 1})
            assert link.connection is not connection

    run(main())
