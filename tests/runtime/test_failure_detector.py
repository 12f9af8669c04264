"""The failure detector survives any error of a single peer."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gapless import connect
from gapless.overlay import chain
from gapless.protocol import Input, Resumed, Suspected, Trusted
from gapless.runtime import detector
from gapless.runtime.connection import Connection, Link
from gapless.runtime.detector import Detector
from gapless.runtime.event_loop import run

from .local import QUICK, local
from .test_links import MembershipLog, connected


class Gone:
    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*arguments: object) -> None:
            raise RuntimeError(f"unable to {name}; the handler is closed")

        return fail


def test_a_silently_closed_transport_is_replaced_and_the_others_are_still_watched() -> None:
    async def main() -> None:
        async with local(chain(3), f=1) as network:
            await connected(network, pairs=3)
            links = network.brokers["b0"].links
            before = links.links["b1"].connection
            assert before is not None
            before._transport = Gone()  # type: ignore[assignment]
            async with asyncio.timeout(10):
                while links.links["b1"].connection in (before, None):
                    await asyncio.sleep(0.01)
            news = MembershipLog(network.brokers["b0"])
            await network.crash("b2")
            await news.wait_for(Suspected("b2"))

    run(main())


@pytest.mark.parametrize("callback", ["_listen", "_suspect", "trust", "miss"])
def test_each_callback_of_the_detector_may_fail_for_one_peer(callback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    works = getattr(Detector, callback)

    def fail_for_b1(self: Detector, link: Link, *facts: Any) -> None:
        if link.name == "b1" and "b0" not in self._links:
            failed.append(callback)
            raise RuntimeError("a bug")
        works(self, link, *facts)

    async def main() -> None:
        async with local(chain(3), f=1) as network:
            await connected(network, pairs=3)
            news = MembershipLog(network.brokers["b0"])
            monkeypatch.setattr(Detector, callback, fail_for_b1)
            link = network.brokers["b0"].links.links["b1"]
            link.silence.begin(0, 0)
            link.absence = "suspected" if callback == "trust" else ""
            if callback in ("_suspect", "miss"):
                there = network.brokers["b1"].links.links["b0"]
                there.connection = None  # so that it sends no more pings
            async with asyncio.timeout(20):
                while not failed:
                    await asyncio.sleep(0.01)
            await network.crash("b2")
            await news.wait_for(Suspected("b2"))
            monkeypatch.undo()
            await network.start("b2")
            await news.wait_for(Trusted("b2"))

    run(main())


def test_a_connection_whose_dialling_was_cancelled_after_it_was_open_is_closed() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            links = network.brokers["b0"].links
            loop = links.loop

            class Loop:
                def __getattr__(self, name: str) -> Any:
                    return getattr(loop, name)

                async def create_connection(self, make: Callable[[], Connection], host: str, port: int) -> None:
                    _, connection = await loop.create_connection(make, host, port)
                    await connection.greeted
                    connection._transport = Gone()  # type: ignore[assignment]
                    links.loop = loop
                    loop.call_soon(loop.call_soon, lambda: kept.append(link.connection is connection))
                    raise TimeoutError

            kept: list[bool] = []
            link = links.links["b1"]
            links.loop = Loop()  # type: ignore[assignment]
            assert link.connection is not None
            before = link.connection
            before.abort()
            async with asyncio.timeout(10):
                while not kept or link.connection in (before, None):
                    await asyncio.sleep(0.01)
            assert kept == [False]

    run(main())


def test_further_messages_of_a_refused_connection_are_ignored() -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            links = network.brokers["b0"].links
            silent = links.new_connection(None, b"")
            received: list[int] = []
            silent._greet = lambda kind, body: received.append(kind)  # type: ignore[method-assign]
            silent.frame_received(1, memoryview(b""))
            assert received == []

    run(main())


def test_a_peer_whose_bytes_are_not_read_yet_is_not_suspected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            links = network.brokers["b0"].links
            link, detector = links.links["b1"], links.detector
            monkeypatch.setattr(Connection, "has_unread", True)
            link.silence.begin(0, 0)
            detector._look_at([link])
            assert detector.absences["suspected"] == 0
            monkeypatch.setattr(Connection, "has_unread", False)
            link.seen_in = -1 if link.connection is None else link.connection.bytes_in
            link.silence.begin(0, 0)
            detector._look_at([link])
            assert detector.absences["suspected"] == 1

    run(main())


@pytest.mark.parametrize("has_disk", [True, False])
def test_a_broker_with_a_disk_learns_that_it_was_paused(has_disk: bool) -> None:
    async def main() -> None:
        async with local(chain(2)) as network:
            await connected(network, pairs=1)
            reported: list[Input] = []
            detector = network.brokers["b0"].links.detector
            detector.reports_pauses = has_disk
            detector._give = reported.append
            time.sleep(QUICK.suspect_ms / 1000)
            began = time.monotonic()
            while (
                time.monotonic() < began + 10
                and Resumed() not in reported
                and (has_disk or time.monotonic() < began + 0.2)
            ):
                await asyncio.sleep(0.01)
            assert (Resumed() in reported) == has_disk

    run(main())


def test_a_broker_with_many_clients_pings_less_often_without_false_suspicions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detector, "CLIENT_PINGS_PER_S", 8)
    monkeypatch.setattr(detector, "AT_ONCE", 2)

    async def main() -> None:
        async with local(chain(2)) as network, AsyncExitStack() as stack:
            links = network.brokers["b0"].links
            clients = [await stack.enter_async_context(connect(network.at("b0"))) for _ in range(5)]
            received = [client._connection_manager._links.links["b0"] for client in clients]
            async with asyncio.timeout(20):
                while [link.pace for link in received] != [13] * 5:  # 5 clients, 8 pings per second, where 20 are usual
                    await asyncio.sleep(0.01)
            before = [link.connection.bytes_in for link in received if link.connection is not None]
            await asyncio.sleep(2)
            after = [link.connection.bytes_in for link in received if link.connection is not None]
            assert [link.absence for link in received] == [""] * 5
            assert links.detector.absences["suspected"] == 0
            assert all(0 < late - early < 10 * 6 for early, late in zip(before, after, strict=True)), "pings of 6 bytes"
            assert links.links["b1"].pace == 1, "brokers speak to each other as ever"
            mute = next(link for name, link in links.links.items() if name == clients[0].name)
            began_us = mute.silence.last_seen_at
            async with asyncio.timeout(20):
                while not links.detector.absences["suspected"]:
                    mute.silence.begin(began_us - 14 * 8 * 400_000, 0)  # its data is not read
                    mute.seen_in = mute.connection.bytes_in if mute.connection is not None else 0
                    await asyncio.sleep(0.01)
            for client in clients[1:]:
                await client.close()
            async with asyncio.timeout(20):
                while received[0].pace > 3:
                    await asyncio.sleep(0.01)

    run(main())
