"""Durable subscriptions over HTTP: acknowledged events are never redelivered, others are, at any broker."""

import asyncio

import pytest

from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .serving import first, serving, sse
from .test_streams import numbers, publisher


@pytest.mark.parametrize("protocol", ["gapless"])
def test_acknowledged_events_are_never_redelivered_and_all_others_are(protocol: str) -> None:
    async def main() -> None:
        async with serving(chain(3), protocol=protocol) as http:
            ann = await publisher(http, "ann", "b0")
            params = {"durable": "billing", "filter": "n >= 0"}
            messages = sse(http.client("b0"), params)
            await anext(messages)
            for n in range(6):
                await ann.publish({"n": n})
            found = await first(messages, 4)
            acked = await http.client("b0").post("/durable/billing/ack", json={"ids": [found[1].data["id"]]})
            assert (acked.status_code, acked.json()) == (200, {"acknowledged": 2})
            await messages.aclose()  # type: ignore[attr-defined]
            again = sse(http.client("b2"), params)
            rest = await first(again, 4)
            assert numbers(rest) == [2, 3, 4, 5]
            assert rest[0].data["redelivered"] is True
            by_position = await http.client("b2").post(
                "/durable/billing/ack", json={"position": rest[2].data["position"]}
            )
            assert by_position.json() == {"acknowledged": 3}
            await again.aclose()  # type: ignore[attr-defined]
            assert numbers(await first(sse(http.client("b1"), params), 1)) == [5]
            await ann.close()

    run(main())


def test_nacked_events_are_redelivered_after_their_delay() -> None:
    async def main() -> None:
        async with serving(chain(2), protocol="gapless") as http:
            ann = await publisher(http, "ann", "b0")
            client = http.client("b0")
            messages = sse(client, {"durable": "billing", "filter": "n >= 0"})
            await anext(messages)
            for n in range(3):
                await ann.publish({"n": n})
            found = await first(messages, 3)
            given = {"nack": [found[1].data["id"]], "delay_s": 0.2}
            assert (await client.post("/durable/billing/ack", json=given)).json() == {"acknowledged": 1}
            assert (await client.post("/durable/billing/ack", json=given)).status_code == 409
            [again] = await first(messages, 1)
            assert (again.data["attributes"]["n"], again.data["redelivered"]) == (1, True)
            both = await client.post("/durable/billing/ack", json={"ids": ["ann:1"], "nack": ["ann:2"]})
            assert both.status_code == 400
            await ann.close()

    run(main())


def test_members_of_a_group_share_events_and_acknowledge_their_own() -> None:
    async def main() -> None:
        async with serving(chain(2)) as http:
            ann = await publisher(http, "ann", "b0")
            params = {"durable": "work", "filter": "TRUE", "share": "1"}
            streams = [sse(http.client("b0"), params), sse(http.client("b1"), params)]
            for stream in streams:
                await anext(stream)
            for n in range(40):
                await ann.publish({"n": n})
            found: list[int] = []

            async def work(place: int) -> None:
                async for message in streams[place]:
                    if message.event == "message":
                        found.append(message.data["attributes"]["n"])
                        answer = await http.client(f"b{place}").post(
                            "/durable/work/ack", json={"ids": [message.data["id"]]}
                        )
                        assert answer.status_code == 200, answer.text

            workers = [asyncio.create_task(work(place)) for place in (0, 1)]
            async with asyncio.timeout(60):
                while len(set(found)) < 40:
                    await asyncio.sleep(0.02)
            for worker in workers:
                worker.cancel()
            assert sorted(found) == list(range(40))
            await ann.close()

    run(main())


def test_acknowledgements_that_make_no_sense_are_refused() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            nobody = await client.post("/durable/none/ack", json={"ids": ["a:1"]})
            assert (nobody.status_code, nobody.json()["type"]) == (404, "/docs/problems#not-attached")
            messages = sse(client, {"durable": "x"})
            await anext(messages)
            for body, status in (
                ({}, 400),
                ({"ids": ["a:1"], "position": "p1"}, 400),
                ({"position": "x"}, 400),
                ({"ids": ["a:1"]}, 409),
                ({"id": "a"}, 400),
            ):
                assert (await client.post("/durable/x/ack", json=body)).status_code == status, body
            form = await client.post("/durable/x/ack", content=b"{}", headers={"Content-Type": "text/plain"})
            assert form.status_code == 415

    run(main())


def test_with_ack_auto_what_was_sent_is_acknowledged() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            ann = await publisher(http, "ann", "b0")
            params = {"durable": "billing", "ack": "auto"}
            messages = sse(http.client("b0"), params)
            await anext(messages)
            for n in range(3):
                await ann.publish({"n": n})
            assert numbers(await first(messages, 3)) == [0, 1, 2]
            await messages.aclose()  # type: ignore[attr-defined]
            async with asyncio.timeout(20):
                while http.servers["b0"].streams:
                    await asyncio.sleep(0.02)
            await ann.publish({"n": 3})
            assert numbers(await first(sse(http.client("b0"), params), 1)) == [3]
            await ann.close()

    run(main())
