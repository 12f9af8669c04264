"""`POST /events`: formats, confirmation, retries, and errors."""

import asyncio
from typing import Any

import httpx
import pytest

from gapless.client import Client, connect
from gapless.events import Event, PublishedEvent
from gapless.http.step_meter import STEP_MAX_MS
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.event_loop import run

from .serving import Serving, serving

CLOUD = {"specversion": "1.0", "id": "c1", "source": "/shop", "type": "order.placed"}


async def history(http: Serving, text: str = "TRUE") -> list[Event]:
    async with connect(http.network.url) as client:
        return [event async for event in await client.read(text)]


def test_events_are_confirmed_and_have_ids_and_a_position() -> None:
    async def main() -> None:
        async with serving(chain(3)) as http:
            client = http.client("b0")
            single = await client.post("/events", json={"attributes": {"topic": "order", "n": 1}, "data": {"a": [1]}})
            assert single.status_code == 201
            many = await client.post(
                "/events",
                json=[
                    {"attributes": {"topic": "order", "n": 2, "big": True, "x": 1.5}, "text": "grün"},
                    {"attributes": {"topic": "order", "n": 3}, "data_base64": "AP8="},
                ],
            )
            found = await history(http)
            assert [event.id for event in found] == [
                single.json()["id"],
                *(each["id"] for each in many.json()["events"]),
            ]
            assert found[0].payload == b'{"a":[1]}'
            assert found[0].attributes["datacontenttype"] == "application/json"
            assert found[1].attributes == {"topic": "order", "n": 2, "big": True, "x": 1.5}
            assert [event.payload for event in found[1:]] == ["grün".encode(), b"\0\xff"]
            assert found[0].position <= Position(single.json()["position"]) < found[1].position
            assert found[2].position <= Position(many.json()["position"])

    run(main())


def test_cloud_events_in_all_modes() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            binary = {f"ce-{name}": value for name, value in CLOUD.items()} | {"ce-region": "k%C3%B6ln"}
            for headers, body in (
                ({**binary, "Content-Type": "text/plain"}, b"hello"),
                (
                    {"Content-Type": "application/cloudevents+json"},
                    b'{"specversion":"1.0","id":"c2","source":"/shop","type":"t","data":{"a":1}}',
                ),
                (
                    {"Content-Type": "application/cloudevents-batch+json; charset=utf-8"},
                    b'[{"specversion":"1.0","id":"c3","source":"/shop","type":"t","data_base64":"AP8="},'
                    b'{"specversion":"1.0","id":"c4","source":"/shop","type":"t","datacontenttype":"text/xml","data":"<a/>"}]',
                ),
            ):
                answer = await client.post("/events", headers=headers, content=body)
                assert answer.status_code == 201, answer.text
            found = await history(http, "source = '/shop'")
            assert [event.attributes["id"] for event in found] == ["c1", "c2", "c3", "c4"]
            assert found[0].attributes["region"] == "köln"
            assert [event.payload for event in found] == [b"hello", b'{"a":1}', b"\0\xff", b"<a/>"]
            lines = (
                await client.get(
                    "/events", params={"since": "earliest", "until": "now", "format": "ndjson", "cloudevents": "1"}
                )
            ).text
            assert '"id":"c1"' in lines
            assert '"specversion":"1.0"' in lines
            assert '"data":"<a/>"' in lines

    run(main())


def test_a_retry_publishes_nothing_twice_at_any_broker() -> None:
    async def main() -> None:
        async with serving(chain(3)) as http:
            event = {"id": "order-17", "attributes": {"topic": "order"}, "data": 1}
            first = await http.client("b0").post("/events", json=event)
            again = await http.client("b0").post("/events", json=event)
            elsewhere = await http.client("b2").post("/events", json=event)
            assert [each.status_code for each in (first, again, elsewhere)] == [201, 200, 200]
            assert {each.json()["id"] for each in (first, again, elsewhere)} == {first.json()["id"]}
            assert [event.id for event in await history(http)] == [first.json()["id"]]
            keyed = await http.client("b0").post("/events", json={"attributes": {}}, headers={"Idempotency-Key": "k"})
            same = await http.client("b0").post("/events", json={"attributes": {}}, headers={"Idempotency-Key": "k"})
            assert keyed.json()["id"] == same.json()["id"]

    run(main())


def test_attempts_at_the_same_time_and_within_a_batch_are_one_event() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            event = {"id": "x", "attributes": {"topic": "order"}}
            client = http.client("b0")
            answers = await asyncio.gather(*(client.post("/events", json=[event, event]) for _ in range(8)))
            assert {each["id"] for answer in answers for each in answer.json()["events"]} == {
                each.id for each in await history(http)
            }
            assert len(await history(http)) == 1

    run(main())


def test_an_id_of_another_event_is_a_conflict() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            await client.post("/events", json={"id": "x", "attributes": {"n": 1}})
            other = await client.post("/events", json={"id": "x", "attributes": {"n": 2}})
            assert (other.status_code, other.json()["type"]) == (409, "/docs/problems#conflict")
            elsewhere = await client.post("/events", json={"id": "x", "attributes": {"n": 2, "source": "y"}})
            assert elsewhere.status_code == 201  # the identifier is unique together with its source

    run(main())


def test_a_cancelled_request_continues_and_its_retry_finds_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        confirmations_pass = asyncio.Event()
        publish = Client.publish

        async def publish_late(client: Client, *arguments: Any) -> PublishedEvent:
            event = await publish(client, *arguments)
            await confirmations_pass.wait()
            return event

        monkeypatch.setattr(Client, "publish", publish_late)
        async with serving(1, f=0) as http:
            event = {"id": "x", "attributes": {"n": 1}}
            for seconds in (0.01, 0.5):
                with pytest.raises(httpx.TimeoutException):
                    await http.client("b0").post("/events", json=event, timeout=seconds)
            confirmations_pass.set()
            answer = await http.client("b0").post("/events", json=event)
            assert answer.status_code in (200, 201)
            assert [each.id for each in await history(http)] == [answer.json()["id"]]

    run(main())


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "the body is not an event"),
        (b"[]", 400, "the array contains no event"),
        (b'{"attribute": {}}', 400, "unknown field `attribute`"),
        (b'{"data": 1, "text": "x"}', 400, "has data and text"),
        (b'{"data_base64": "%"}', 400, "is not base64"),
        (b'{"attributes": {"a": 1e999}}', 400, "the body is not an event"),
        (b'{"attributes": {"n": 99999999999999999999}}', 422, "does not fit into a signed 64-bit integer"),
        (b'{"attributes": {"a": [1]}}', 400, "the body is not an event"),
        (b'{"id": "x", "attributes": {"id": "y"}}', 400, "remove one of them"),
        (b"[" + b",".join([b"{}"] * 1001) + b"]", 413, "at most 1,000 events"),
        (b"x" * (2 * 1024 * 1024 + 1), 413, "at most 2,097,152 bytes"),
    ],
)
def test_events_that_cannot_be_published_are_refused(body: bytes, status: int, words: str) -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            answer = await http.client("b0").post("/events", content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
            assert await history(http) == []

    run(main())


HOSTILE = (
    ("application/json", b'{"data":' + b"[" * 500_000 + b"]" * 500_000 + b"}", 422),
    ("application/json", b'{"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
    ("application/json", b'{"attributes":{"a":"\xff"}}', 400),
    ("application/json", b'{"data":"\xff\xfe"}', 400),
    ("application/json", b"[" + b"{}," * 600_000 + b"{}]", 413),
    ("application/json", b"[" + b"1," * 900_000 + b"1]", 400),
    ("application/json", b'{"attributes":{' + b",".join(b'"a%d":1' % n for n in range(150_000)) + b"}}", 422),
    ("application/json", b'{"id":"' + b"x" * 1_001 + b'"}', 400),
    ("application/cloudevents-batch+json", b"[" + b"[]," * 600_000 + b"[]]", 400),
    ("application/cloudevents-batch+json", b"[" + b"{}," * 600_000 + b"{}]", 413),
    ("application/cloudevents+json", b'{"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
    ("application/cloudevents+json", b"{" + b",".join(b'"a%d":1' % n for n in range(20_000)) + b"}", 422),
)  # fmt: skip


def test_hostile_bodies_are_refused_and_delay_no_other_request() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            for kind, body, status in HOSTILE:
                answer = await client.post("/events", content=body, headers={"Content-Type": kind})
                assert (answer.status_code, answer.json()["status"]) == (status, status), (body[:40], answer.text)
            for path in ("/api/covers", "/durable/x/ack"):
                body = b'{"filters":[' + b'"",' * 600_000 + b'""]}'
                large = await client.post(path, content=body, headers={"Content-Type": "application/json"})
                assert (large.status_code, large.json()["type"]) == (413, "/docs/problems#too-large")
            steps = http.servers["b0"]._gateway.steps
            assert steps.longest_ms < STEP_MAX_MS, steps.what
            assert await history(http) == []

    run(main())


def test_a_large_batch_with_long_ids_is_published_once_at_any_broker() -> None:
    async def main() -> None:
        async with serving(chain(2), f=0) as http:
            batch = [{"id": f"{number}-{'x' * 300}"} for number in range(400)]
            first = (await http.client("b0").post("/events", json=batch)).json()["events"]
            again = (await http.client("b1").post("/events", json=batch)).json()["events"]
            assert [each["duplicate"] for each in again] == [True] * 400
            assert [each["id"] for each in again] == [each["id"] for each in first]

    run(main())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": None}, "'source'"),
        ({"specversion": "0.3"}, "supports only CloudEvents 1.0"),
        ({"Upper": "x"}, "which has only a-z and 0-9"),
        ({"list": [1]}, "a string, an integer or a boolean"),
        ({"data": 1, "data_base64": "AA=="}, "has both"),
    ],
)
def test_cloud_events_are_checked(change: dict[str, Any], words: str) -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            headers = {"Content-Type": "application/cloudevents+json"}
            answer = await http.client("b0").post("/events", json=CLOUD | change, headers=headers)
            assert (answer.status_code, words in answer.json()["detail"]) == (400, True), answer.text
            plain = await http.client("b0").post("/events", content=b"x", headers={"Content-Type": "text/plain"})
            assert plain.status_code == 415

    run(main())
