"""The gateway of broker processes: streams continue after `kill -9`, and slow readers take little memory."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from gapless.client import Client, connect
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, free_ports, local_network
from gapless.runtime.network_file import ProtocolEntry

from .serving import SLOW_SUSPICION, sse

EVENTS = 300
SLOW_EVENTS, SLOW_PAYLOAD = 1_000, bytes(40_000)
HISTORY = 4 * 1024 * 1024
GROWTH_MAX_KIB = 24 * 1024


class Site:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def client(self, name: str) -> httpx.AsyncClient:
        place = next(entry.http for entry in self.fleet.config.brokers if entry.name == name)
        return httpx.AsyncClient(base_url=f"http://{place}", timeout=30, trust_env=False)

    async def publisher(self, name: str) -> Client:
        client = await connect(f"gapless://{self.fleet.config.addresses[name]}", name="publisher")
        await client.advertise("TRUE")
        return client


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    config = local_network(
        chain(3), http_ports=list(free_ports(3)), runtime=SLOW_SUSPICION,
        protocol=ProtocolEntry(options={"delivery_window": 200, "lag_window": 400, "history_bytes": HISTORY}),
    )  # fmt: skip
    with Fleet(config, tmp_path_factory.mktemp("gateway")) as fleet:
        fleet.start_all()
        run(fleet.until_whole(60))
        yield Site(fleet)


def test_a_stream_resumes_at_another_broker_without_gap_or_duplicate(site: Site) -> None:
    async def main() -> None:
        ann, bob = await site.publisher("b0"), await site.publisher("b2")
        seen: list[str] = []
        last = ""
        is_killed = False

        async def publish(client: Client) -> list[str]:
            found = []
            for n in range(EVENTS):
                found.append((await client.publish({"topic": "resume", "n": n})).id)
                await asyncio.sleep(0.005)
            return found

        async with asyncio.timeout(120):
            publishing = None
            for name in ("b1", "b0", "b2"):
                async with site.client(name) as client:
                    headers = {"Last-Event-ID": last} if last else {}
                    with suppress(httpx.HTTPError):
                        async for message in sse(client, {"filter": "topic = 'resume'"}, headers):
                            last = message.id or last
                            if message.event == "ready" and publishing is None:
                                publishing = asyncio.gather(publish(ann), publish(bob))
                            if message.event != "message":
                                continue
                            seen.append(message.data["id"])
                            if len(seen) == 100 and not is_killed:
                                is_killed = True
                                site.fleet.kill("b1")
                            if len(seen) in (250, 2 * EVENTS):
                                break
            assert publishing is not None
            published = await publishing
        assert len(seen) == len(set(seen)) == 2 * EVENTS
        assert set(seen) == {*published[0], *published[1]}
        site.fleet.start("b1")
        await site.fleet.until_whole(60)
        await ann.close()
        await bob.close()

    run(main())


def test_a_durable_stream_continues_after_what_was_acknowledged(site: Site) -> None:
    async def main() -> None:
        ann = await site.publisher("b0")
        query = {"durable": "billing", "filter": "topic = 'bill'"}
        async with site.client("b2") as client:
            stream = sse(client, query)
            assert (await anext(stream)).event == "ready"
            for n in range(6):
                await ann.publish({"topic": "bill", "n": n})
            found = [await anext(stream) for _ in range(6)]
            await client.post("/durable/billing/ack", json={"ids": [found[2].data["id"]]})
            site.fleet.kill("b2")
            with suppress(httpx.HTTPError, StopAsyncIteration):
                await anext(stream)
        async with site.client("b1") as client, asyncio.timeout(60):
            stream = sse(client, query)
            assert (await anext(stream)).event == "ready"
            rest: list[Any] = [await anext(stream) for _ in range(3)]
            assert [each.data["attributes"]["n"] for each in rest] == [3, 4, 5]
            await stream.aclose()  # type: ignore[attr-defined]
        site.fleet.start("b2")
        await site.fleet.until_whole(60)
        await ann.close()

    run(main())


def test_a_stalled_reader_costs_its_broker_little_memory(site: Site) -> None:
    async def main() -> None:
        ann = await site.publisher("b0")
        params = {"format": "ndjson", "filter": "topic = 'slow'"}
        async with site.client("b1") as client, client.stream("GET", "/events", params=params) as response:
            lines = response.aiter_lines()
            assert "ready" in await anext(lines)
            payload = bytes(1_000)
            for n in range(200):  # a first round fills the windows and the buffers at both ends
                await ann.publish({"topic": "slow", "n": n}, payload)
            begun = site.fleet.memory_kib("b1")[0]
            for n in range(200, SLOW_EVENTS):
                await ann.publish({"topic": "slow", "n": n}, SLOW_PAYLOAD)
            assert site.fleet.memory_kib("b1")[0] - begun < GROWTH_MAX_KIB
            found: list[int] = []
            skipped = 0
            async with asyncio.timeout(60):
                async for line in lines:
                    document = json.loads(line) if line else {}
                    if "skipped" in document:
                        skipped += 1
                    if "event" in document:
                        found.append(document["event"]["attributes"]["n"])
                        if found[-1] == SLOW_EVENTS - 1:
                            break
            assert found == sorted(set(found))
            assert len(found) == SLOW_EVENTS or skipped
        await ann.close()

    run(main())
