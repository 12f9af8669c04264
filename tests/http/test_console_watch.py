"""Open consoles watch the network over one stream each, and share the encoded bytes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gapless.client import connect
from gapless.http.feed import Feed, Watcher, changed_members
from gapless.http.merge_patch import merge_patch
from gapless.http.step_meter import StepMeter
from gapless.overlay import chain
from gapless.runtime import report_query
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_for_report
from gapless.runtime.turn_meter import TurnMeter
from tests.runtime.secure import secure

from .serving import serving, serving_secure, trusting

ALL = "/api/watch?topic=network&topic=sessions&topic=durables&topic=log"


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"b": 3, "c": [1]}, {"a": None, "b": 3, "c": [1]}),
        ({"a": {"b": 1, "c": 2}, "d": {"e": 1}}, {"a": {"b": 1, "c": 3}, "d": {"e": 1}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_a_patch_has_only_the_changes(old: Any, new: Any, patch: Any) -> None:
    assert merge_patch(old, new) == patch
    assert _patched(old, patch) == new


def _patched(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    made = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _patched(made.get(key), value)
    return made


class Question:
    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"n": 0, "same": 1}
        self.asked = 0

    async def ask(self) -> dict[str, Any]:
        self.asked += 1
        return self.answer


def _lines(taken: bytes) -> list[Any]:
    return [json.loads(line) for line in taken.splitlines()]


def test_a_question_is_asked_once_for_all_and_only_while_somebody_watches() -> None:
    async def main() -> None:
        steps = StepMeter(TurnMeter(asyncio.get_running_loop(), logger=None))  # type: ignore[arg-type]
        question = Question()
        feed = Feed("topic", question.ask, changed_members, every_s=0.05, steps=steps)
        watchers = [Watcher() for _ in range(10)]
        for watcher in watchers:
            feed.add(watcher)
        for watcher in watchers:
            assert _lines(await watcher.take()) == [{"topic": "topic", "whole": {"n": 0, "same": 1}}]
        question.answer = {"n": 1, "same": 1}
        taken = [await watcher.take() for watcher in watchers]
        assert len({id(line) for line in taken}) == 1
        assert _lines(taken[0]) == [{"topic": "topic", "change": {"n": 1}}]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watchers[0].take(), 0.2)
        for watcher in watchers[1:]:
            feed.remove(watcher)
        late = Watcher()
        feed.add(late)
        assert _lines(await late.take()) == [{"topic": "topic", "whole": question.answer}]
        for n in (2, 3, 4):
            question.answer = {"n": n, "same": 1}
            await asyncio.sleep(0.2)
        assert _lines(await late.take()) == [{"topic": "topic", "whole": {"n": 4, "same": 1}}]
        feed.remove(late)
        feed.remove(watchers[0])
        asked = question.asked
        await asyncio.sleep(0.2)
        assert question.asked == asked

    run(main())


async def _watch(client: httpx.AsyncClient, path: str) -> AsyncIterator[dict[str, Any]]:
    documents: dict[str, Any] = {}
    async with client.stream("GET", path) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            found = json.loads(line)
            if "topic" not in found or "problem" in found:
                yield found
                continue
            topic = found["topic"]
            documents[topic] = found["whole"] if "whole" in found else _patched(documents[topic], found["change"])
            yield {"topic": topic, "document": documents[topic]}


async def _until(lines: AsyncIterator[dict[str, Any]], topic: str, wanted: Any) -> Any:
    async with asyncio.timeout(30):
        async for line in lines:
            if line.get("topic") == topic and wanted(line["document"]):
                return line["document"]
    raise AssertionError(f"the stream ended without {topic}")


def test_a_console_gets_what_there_is_and_then_what_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="gapless")

    async def main() -> None:
        async with serving(chain(2), f=0) as http:
            lines = _watch(http.client("b0"), f"{ALL}&broker=b1")
            assert (await _until(lines, "network", lambda found: True))["brokers"]["b1"]["state"] == "up"
            async with connect(http.network.at("b1"), name="dashboard") as client:
                await client.subscribe("topic = 'order'")
                found = await _until(lines, "sessions", lambda found: found["b1"]["rows"])
                assert list(found["b1"]["rows"][0]["subscriptions"].values()) == ["topic = 'order'"]
                await (await client.durable("billing", "topic = 'order'")).close()
                assert (await _until(lines, "durables", len))["billing"]["filter"] == "topic = 'order'"
                http.network.brokers["b1"].logger.info("a line of b1")
                last = await _until(lines, "log", lambda found: found["lines"][-1]["message"] == "a line of b1")
                assert last["broker"] == "b1"
            await _until(lines, "sessions", lambda found: not any(row["subscriptions"] for row in found["b1"]["rows"]))
            await http.network.crash("b1")
            await _until(lines, "network", lambda found: found["brokers"]["b1"]["state"] == "down")
            async with asyncio.timeout(30):
                async for line in lines:
                    if "problem" in line:
                        assert (line["topic"], line["problem"]["status"]) == ("log", 503)
                        break
            http.servers["b0"].stop()
            async with asyncio.timeout(30):
                [*_, last] = [line async for line in lines]
            assert last["problem"]["type"] == "/docs/problems#unavailable"

    run(main())


def test_ten_consoles_ask_each_broker_as_often_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = ask_for_report

    async def counted(address: str, **more: Any) -> dict[str, Any]:
        asked.append(more["about"])
        return await ask(address, **more)

    monkeypatch.setattr(report_query, "ask_for_report", counted)

    async def main() -> None:
        async with serving(1, f=0) as http:
            lines = [_watch(http.client("b0"), "/api/watch?topic=network&topic=sessions") for _ in range(10)]
            for each in lines:
                await _until(each, "network", lambda found: True)
            asked.clear()
            for _ in range(3):
                for each in lines:
                    await _until(each, "network", lambda found: True)
            assert asked.count("") <= 4
            assert asked.count("clients") <= 3
            gateway = http.servers["b0"]._gateway
            for each in lines:
                await each.aclose()  # type: ignore[attr-defined]
            async with asyncio.timeout(20):
                while gateway.feeds._feeds:
                    await asyncio.sleep(0.05)
            assert 0 < gateway.steps.longest_ms < 20

    run(main())


def test_a_user_that_loses_the_right_status_sees_nothing_more(tmp_path: Path) -> None:
    users: dict[str, dict[str, Any]] = {"ops": {"status": True}, "ann": {"subscribe": ["TRUE"]}}

    async def main() -> None:
        async with secure(chain(2), tmp_path, users=users) as network, serving_secure(network) as http:
            context = trusting(tmp_path)
            ann = await http.client("b0", token=network.token("ann"), verify=context).get(ALL)
            assert (ann.status_code, ann.json()["right"]) == (403, "status")
            ops = http.client("b0", token=network.token("ops"), verify=context)
            unknown = await ops.get("/api/watch?topic=weather")
            assert (unknown.status_code, "network" in unknown.json()["detail"]) == (400, True)
            assert (await ops.get("/api/watch?topic=log&broker=b9")).status_code == 404
            lines = _watch(ops, ALL)
            await _until(lines, "network", lambda found: True)
            network.set_users({**users, "ops": {}})
            async with asyncio.timeout(30):
                [*_, last] = [line async for line in lines]
            assert last["problem"]["status"] == 403

    run(main())
