"""`GET /events`: live, resumed without gap or duplicate, bounded, slow."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from gapless.client import Client, connect
from gapless.http import clients
from gapless.overlay import chain
from gapless.runtime.detector import IN_PROCESS_PACE
from gapless.runtime.event_loop import run

from .serving import SLOW_SUSPICION, Message, Serving, first, serving, sse


async def publisher(http: Serving, name: str, at: str) -> Client:
    client = await connect(http.network.at(at), name=name)
    await client.advertise("TRUE")
    return client


def numbers(messages: list[Message]) -> list[Any]:
    return [message.data["attributes"]["n"] for message in messages]


def test_after_ready_every_matching_event_comes() -> None:
    async def main() -> None:
        async with serving(chain(3)) as http:
            ann = await publisher(http, "ann", "b2")
            messages = sse(http.client("b0"), {"filter": "n > 1"})
            ready = await anext(messages)
            assert ready.event == "ready"
            for n in range(4):
                await ann.publish({"n": n}, b"hi")
            found = await first(messages, 2)
            assert numbers(found) == [2, 3]
            assert found[0].data["text"] == "hi"
            assert found[0].data["publisher"] == ann.name
            await ann.close()

    run(main())


def test_a_stream_resumes_after_any_of_its_ids_without_gap_or_duplicate() -> None:
    """Publishers at both ends publish at the same time, so live events arrive in another order than their positions."""

    async def main() -> None:
        async with serving(chain(3)) as http:
            publishers = [await publisher(http, name, at) for name, at in (("ann", "b0"), ("bob", "b2"), ("cy", "b1"))]
            published: set[str] = set()

            async def publish(client: Client) -> None:
                for n in range(60):
                    published.add((await client.publish({"n": n})).id)

            seen: list[str] = []
            last = ""
            messages = sse(http.client("b1"), {})
            await anext(messages)
            work = asyncio.gather(*map(publish, publishers))
            stops = iter((7, 1, 30, 12, 2, 40))
            while len(seen) < 180:
                most = min(next(stops, 180), 180 - len(seen))
                for message in await first(messages, most):
                    seen.append(message.data["id"])
                    last = message.id
                await messages.aclose()  # type: ignore[attr-defined]
                if len(seen) < 180:
                    name = ("b0", "b2", "b1")[len(seen) % 3]
                    messages = sse(http.client(name), {}, {"Last-Event-ID": last})
            await work
            assert len(seen) == len(set(seen))
            assert set(seen) == published
            for client in publishers:
                await client.close()

    run(main())


def test_since_replays_and_reports_the_end_of_the_replay() -> None:
    async def main() -> None:
        async with serving(chain(2)) as http:
            ann = await publisher(http, "ann", "b0")
            for n in range(3):
                await ann.publish({"n": n})
            messages = sse(http.client("b1"), {"since": "earliest"})
            old = await first(messages, 3)
            assert numbers(old) == [0, 1, 2]
            assert "!" not in old[-1].id  # history has plain positions
            assert len(await first(messages, 1, "caught-up")) == 1  # although no further event is published
            nothing = sse(http.client("b1"), {"since": "earliest", "filter": "n > 9"})
            assert [(await anext(nothing)).event for _ in range(2)] == ["ready", "caught-up"]
            await ann.publish({"n": 3})
            assert numbers(await first(messages, 1)) == [3]
            middle = sse(http.client("b0"), {"since": old[0].id})
            assert numbers(await first(middle, 3)) == [1, 2, 3]
            await ann.close()

    run(main())


def test_the_ids_of_a_live_stream_list_no_publisher_whose_events_a_final_position_includes() -> None:
    async def main() -> None:
        async with serving(chain(2), wave_ms=20.0) as http:
            ann, bob = await publisher(http, "ann", "b0"), await publisher(http, "bob", "b1")
            messages = sse(http.client("b1"), {})
            await anext(messages)
            await ann.publish({"n": 0})
            assert len(await first(messages, 1)) == 1
            async with asyncio.timeout(30):
                while True:
                    await bob.publish({"n": 1})
                    [message] = await first(messages, 1)
                    if ann.name not in message.id:
                        break
            resumed = sse(http.client("b0"), {}, {"Last-Event-ID": message.id})
            await ann.publish({"n": 2})
            assert numbers(await first(resumed, 1)) == [2]
            await ann.close()
            await bob.close()

    run(main())


def test_a_bounded_stream_ends_and_a_resumed_one_that_is_complete_has_no_content() -> None:
    async def main() -> None:
        async with serving(chain(2)) as http:
            ann = await publisher(http, "ann", "b0")
            for n in range(5):
                await ann.publish({"n": n})
            client = http.client("b1")
            lines = (await client.get("/events", params={"since": "earliest", "until": "now", "format": "ndjson"})).text
            documents = [json.loads(line) for line in lines.splitlines() if line]
            events = [each for each in documents if "event" in each]
            assert [each["event"]["attributes"]["n"] for each in events] == list(range(5))
            assert "end" in documents[-1]
            until = events[-1]["cursor"]
            rest = sse(client, {"until": until}, {"Last-Event-ID": events[2]["cursor"]})
            assert numbers(await first(rest, 2)) == [3, 4]
            done = await client.get("/events", params={"until": until}, headers={"Last-Event-ID": until})
            assert done.status_code == 204
            await ann.close()

    run(main())


def test_dropped_history_is_reported_in_place() -> None:
    async def main() -> None:
        async with serving(1, f=0, history_bytes=65_536, wave_ms=20.0) as http:
            ann = await publisher(http, "ann", "b0")
            begin = await ann.position()
            for n in range(60):
                await ann.publish({"n": n}, bytes(8_000))
            messages = sse(http.client("b0"), {"since": str(begin)})
            [skipped] = await first(messages, 1, "skipped")
            assert skipped.data["lost"] or skipped.data["gap"]
            await ann.close()

    run(main())


def test_a_stalled_reader_delays_no_other_and_receives_everything_later() -> None:
    async def main() -> None:
        async with serving(chain(2), delivery_window=1_000, lag_window=2_000) as http:
            ann = await publisher(http, "ann", "b0")
            async with http.client("b1").stream("GET", "/events", params={"format": "ndjson"}) as response:
                lines = response.aiter_lines()
                assert "ready" in await anext(lines)
                payload = bytes(40_000)
                async with asyncio.timeout(60):
                    for n in range(400):
                        await ann.publish({"n": n}, payload)
                found: list[int] = []
                async with asyncio.timeout(60):
                    async for line in lines:
                        if line and "event" in (document := json.loads(line)):
                            found.append(document["event"]["attributes"]["n"])
                            if len(found) == 400:
                                break
                assert found == list(range(400))
            await ann.close()

    run(main())


def test_an_event_that_claims_to_be_json_and_is_not_reaches_every_reader() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            ann = await publisher(http, "ann", "b0")
            payloads = (b'"\xff"', b"[" * 20_000 + b"]" * 20_000, b"{", b'{"a": 1}')
            for n, payload in enumerate(payloads):
                await ann.publish({"n": n, "datacontenttype": "application/json"}, payload)
            messages = await first(sse(http.client("b0"), {"since": "earliest"}), 4)
            assert numbers(messages) == [0, 1, 2, 3]
            kinds = [next(kind for kind in ("data", "text", "data_base64") if kind in each.data) for each in messages]
            assert kinds == ["data_base64", "text", "text", "data"]
            await ann.close()

    run(main())


def test_head_asks_for_no_stream() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            head = await http.client("b0").head("/events")
            assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            assert (await http.client("b0").head("/events?share=1")).status_code == 400
            assert http.servers["b0"].streams == 0

    run(main())


def test_requested_values_are_checked() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            for params, status, words in (
                ({"filter": "price <"}, 422, "expected a name"),
                ({"filtre": "TRUE"}, 400, "no parameter 'filtre'"),
                ({"since": "yesterday"}, 422, "which is not a position"),
                ({"durable": "x", "since": "1h"}, 400, "leave out since and until"),
                ({"share": "1"}, 400, "add durable=NAME"),
                ({"ack": "never"}, 400, "write manual or auto"),
            ):
                answer = await client.get("/events", params=params)
                assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
            wrong = await client.get("/events", params={"filter": "price <"})
            assert (wrong.json()["filter"], wrong.json()["position"]) == ("price <", 7)
            bad = await client.get("/events", headers={"Last-Event-ID": "p1!x"})
            assert "the last id unchanged" in bad.json()["detail"]

    run(main())


def test_streams_end_when_the_broker_leaves() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            messages = sse(http.client("b0"), {})
            await anext(messages)
            http.servers["b0"].stop()
            [problem] = await first(messages, 1, "problem")
            assert problem.data["detail"] == "the broker is stopping; connect to another broker"

    run(main())


def test_a_broker_pings_the_clients_in_its_own_process_seldom() -> None:
    async def main() -> None:
        async with (
            serving(1, f=0, runtime=SLOW_SUSPICION) as http,
            connect(http.network.at("b0"), name="ann") as ann,
        ):
            links = http.network.brokers["b0"].links
            messages = sse(http.client("b0"), {})
            await anext(messages)
            [own] = [link for name, link in links.links.items() if name.startswith("http-")]
            assert (own.pace, links.links[ann.name].pace) == (IN_PROCESS_PACE, 1)
            await asyncio.sleep(1.5 * SLOW_SUSPICION.suspect_ms / 1000)
            assert own.absence == ""
            await messages.aclose()  # type: ignore[attr-defined]
            async with asyncio.timeout(20):
                while links.detector._in_process:
                    await asyncio.sleep(0.05)

    run(main())


async def _status_of(address: str, leave: asyncio.Event) -> tuple[int, str, str]:
    """Open a stream. Return the status, the headers and the beginning of the response, and keep the stream open until
    `leave` is set."""
    reader, writer = await asyncio.open_connection(*address.split(":"))
    try:
        writer.write(f"GET /events?filter=n%20%3D%201 HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        body = (await reader.read(4_000)).decode()
        if " 200 " in head.splitlines()[0]:
            await leave.wait()
        return int(head.split()[1]), head, body
    finally:
        writer.close()


def test_many_streams_may_be_opened_at_once_and_those_above_the_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "STREAMS_MAX", 190)

    async def main() -> None:
        async with serving(1, f=0, runtime=SLOW_SUSPICION) as http:
            leave = asyncio.Event()
            address = http.network.brokers["b0"].entry.http
            opening = [asyncio.ensure_future(_status_of(address, leave)) for _ in range(200)]
            async with asyncio.timeout(60):
                while http.servers["b0"].streams < 190 or sum(each.done() for each in opening) < 10:
                    await asyncio.sleep(0.05)
            leave.set()
            answers = await asyncio.gather(*opening)
            assert Counter(status for status, _, _ in answers) == {200: 190, 503: 10}
            head, body = next((head, body) for status, head, body in answers if status == 503)
            assert "content-type: application/problem+json" in head.lower()
            assert "retry-after: 5" in head.lower()
            assert "serves 190 streams, which is the maximum; use another broker" in body
            async with asyncio.timeout(60):
                while http.servers["b0"].streams:
                    await asyncio.sleep(0.05)
            leave.set()
            assert (await _status_of(address, leave))[0] == 200

    run(main())
