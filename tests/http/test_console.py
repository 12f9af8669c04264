"""The files of the console, and the requests behind it, without a browser."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from gapless.causes import caused_by
from gapless.client import connect
from gapless.events import Event
from gapless.http.console_files import console_files
from gapless.http.step_meter import STEP_MAX_MS
from gapless.overlay import chain
from gapless.runtime import samples
from gapless.runtime.event_loop import run
from tests.runtime.secure import secure

from .serving import SLOW_SUSPICION, serving, serving_secure, trusting

SIZE_MAX = 200_000


def test_it_is_small_and_loads_no_external_resources() -> None:
    files = console_files()
    assert {"index.html", "app.js", "style.css", "gapless.js"} <= files.keys()
    assert sum(len(content) for content, _ in files.values()) < SIZE_MAX
    text = b"\n".join(content for content, _ in files.values()).decode()
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org", "http://127.0.0.1"}
    imported = set(re.findall(r'from "/console/([\w.]+)"', text))
    assert imported <= files.keys()
    assert "innerHTML" not in text


def test_the_page_has_a_strict_policy_and_is_asked_for_again_only_if_it_changed() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            page = await client.get("/")
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self'" in policy
            assert "unsafe" not in policy
            for name in re.findall(r'(?:src|href)="(/console/[\w.]+)"', page.text):
                part = await client.get(name)
                assert part.status_code == 200, name
                again = await client.get(name, headers={"If-None-Match": part.headers["etag"]})
                assert (again.status_code, again.content) == (304, b"")
            for missing in ("/console/nothing.js", "/console/..%2Fserver.py", "/console/index.html"):
                assert (await client.get(missing)).status_code == 404, missing

    run(main())


@pytest.mark.parametrize("protocol", ["gapless"])
def test_clients_of_all_brokers_are_listed_with_what_covers_their_filters(protocol: str) -> None:
    async def main() -> None:
        async with serving(chain(2), f=0, protocol=protocol) as http, connect(http.network.at("b1")) as client:
            await client.subscribe("topic = 'order'")
            await client.subscribe("topic = 'order' AND amount > 5")
            browser = http.client("b0")
            [row] = (await browser.get("/api/sessions")).json()["b1"]["rows"]
            assert row["client"] == client.name
            filters = sorted(row["subscriptions"].values())
            assert filters == ["topic = 'order'", "topic = 'order' AND amount > 5"]
            covers = (await browser.post("/api/covers", json={"filters": [*filters, "not ("]})).json()
            assert covers == {filters[1]: filters[0]}
            network = (await browser.get("/api/network")).json()
            assert network["links"] == [["b0", "b1"]]
            assert {name: broker["state"] for name, broker in network["brokers"].items()} == {"b0": "up", "b1": "up"}
            assert network["brokers"]["b0"]["links"]["b1"]["bytes_out"] > 0
            assert (await browser.request("DELETE", f"/api/clients/{client.name}")).json()["ended"] is True
            assert (await browser.request("DELETE", f"/api/clients/{client.name}")).json()["ended"] is False
            async with asyncio.timeout(20):
                while (await browser.get("/api/sessions")).json()["b1"]["rows"]:
                    await asyncio.sleep(0.1)

    run(main())


def test_the_graph_of_an_event_has_its_causes_and_effects_that_the_user_may_read(tmp_path: Path) -> None:
    users: dict[str, dict[str, Any]] = {
        "ann": {"publish": ["TRUE"], "subscribe": ["TRUE"], "history": True},
        "bob": {"subscribe": ["topic <> 'order'"], "history": True},
    }

    async def main() -> None:
        async with secure(chain(2), tmp_path, users=users) as network, serving_secure(network) as http:
            async with connect(network.at("b1"), credentials=network.by_token("ann")) as client:
                made: list[Event] = []
                await client.advertise("TRUE")
                async with client.subscribe("TRUE") as events:
                    for topic in ("order", "payment", "invoice"):
                        causes = caused_by(made[-1]) if made else {}
                        await client.publish({"topic": topic, **causes})
                        made += await events.take(1, timeout_s=30)
            position = str(made[1].position)
            context = trusting(tmp_path)
            ann = http.client("b0", token=network.token("ann"), verify=context)
            graph = (await ann.get("/api/graph", params={"position": position})).json()
            assert [node["attributes"]["topic"] for node in graph["nodes"]] == ["order", "payment", "invoice"]
            assert graph["edges"] == [
                {"from": str(made[0].position), "to": position},
                {"from": position, "to": str(made[2].position)},
            ]
            bob = http.client("b0", token=network.token("bob"), verify=context)
            hidden = (await bob.get("/api/graph", params={"position": position})).json()
            assert [node.get("missing", False) for node in hidden["nodes"]] == [True, False, False]
            refused = await bob.get("/api/graph", params={"position": str(made[0].position)})
            assert refused.status_code == 404

    run(main())


def test_the_graph_of_an_event_with_many_effects_is_cut_where_it_is_too_large() -> None:
    name = "an application with a name of 120 characters: " + "x" * 74

    async def main() -> None:
        async with serving(1, f=0) as http, connect(http.network.at("b0"), name=name) as client:
            await client.advertise("TRUE")
            async with client.subscribe("n = 0") as events:
                await client.publish({"n": 0})
                [first] = await events.take(1, timeout_s=30)
            for n in range(1, 41):
                await client.publish({"n": n, **caused_by(first)})
            graph = (await http.client("b0").get("/api/graph", params={"position": str(first.position)})).json()
            assert (len(graph["nodes"]), graph["is_cut"]) == (41, False)
            for n in range(41, 81):
                await client.publish({"n": n, **caused_by(first)})
            graph = (await http.client("b0").get("/api/graph", params={"position": str(first.position)})).json()
            assert (len(graph["nodes"]), graph["is_cut"]) == (60, True)

    run(main())


def test_a_console_that_is_opened_gets_the_recent_course_of_all_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "EVERY_S", 0.1)

    async def main() -> None:
        async with serving(chain(2), f=0) as http, connect(http.network.at("b0")) as client:
            await client.advertise("TRUE")
            for _ in range(5):
                await client.publish({"topic": "order"}, bytes(1_000))
            browser = http.client("b1")
            async with asyncio.timeout(20):
                while True:
                    found = (await browser.get("/api/samples")).json()
                    if [rows["rows"][-1][1] for _, rows in sorted(found.items()) if len(rows["rows"]) > 1] == [5, 0]:
                        break
                    await asyncio.sleep(0.2)
            row = dict(zip(samples.Sample.__struct_fields__, found["b0"]["rows"][-1], strict=True))
            assert row["history"] > 5_000
            assert row["confirmation"][-1] > 0
            assert len(row["confirmation"]) == len(found["b0"]["bounds"]["confirmation"]) + 1

    run(main())


def test_the_log_of_each_broker_can_be_read_and_continued(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="gapless")

    async def main() -> None:
        async with serving(chain(2), f=0) as http:
            browser = http.client("b0")
            for name in ("b0", "b1"):
                http.network.brokers[name].logger.info("a line of %s", name, extra={"peer": "x", "event": "test"})
                found = (await browser.get("/api/log", params={"broker": name})).json()
                line = found["lines"][-1]
                assert (line["message"], line["facts"]) == (f"a line of {name}", {"peer": "x", "event": "test"})
                more = (await browser.get("/api/log", params={"broker": name, "after": line["number"] - 1})).json()
                assert (more["run"], more["lines"]) == (found["run"], [line])
            own = (await browser.get("/api/log")).json()
            assert own["lines"][-1]["message"] == "a line of b0"
            assert (await browser.get("/api/log", params={"broker": "b9"})).status_code == 404
            await http.network.crash("b1")
            gone = await browser.get("/api/log", params={"broker": "b1"})
            assert (gone.status_code, gone.json()["type"]) == (503, "/docs/problems#unavailable")
            assert gone.headers["retry-after"] == "1"

    run(main())


def test_pages_of_other_sites_cannot_act() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                for method, path in (("POST", "/events"), ("DELETE", "/api/clients/x"), ("DELETE", "/durable/x")):
                    answer = await client.request(method, path, headers=headers, json={})
                    assert (answer.status_code, answer.json()["type"]) == (403, "/docs/problems#wrong-origin")
                read = await client.get("/api/network", headers=headers)
                assert "access-control-allow-origin" not in read.headers

    run(main())


def test_no_request_holds_the_event_loop_for_long() -> None:
    async def main() -> None:
        async with (
            serving(chain(3), protocol="gapless", runtime=SLOW_SUSPICION) as http,
            connect(http.network.at("b0"), name="busy") as client,
        ):
            for number in range(60):
                await client.subscribe(f"topic = 'order' AND amount > {number} AND country IN ('DE', 'FR')")
            caller = http.client("b0")
            batch = [
                {"attributes": {"topic": "order", "amount": n, "country": "DE"}, "text": "x" * 500} for n in range(1000)
            ]
            assert (await caller.post("/events", json=batch)).status_code == 201
            position = (await caller.post("/events", json={"attributes": {"topic": "order"}})).json()["position"]
            everything = await caller.get("/events", params={"since": "earliest", "until": position})
            assert everything.text.count('\ndata: {"id"') == 1001
            rows = (await caller.get("/api/sessions")).json()["b0"]["rows"]
            filters = [text for row in rows for text in row["subscriptions"].values()]
            assert len((await caller.post("/api/covers", json={"filters": filters})).json()) > 30
            for path in (
                "/api/network",
                "/api/log",
                "/api/samples",
                "/metrics",
                "/status",
                "/",
                "/console/style.css",
                "/openapi.json",
            ):
                assert (await caller.get(path)).status_code == 200
            steps = http.servers["b0"]._gateway.steps
            assert 0 < steps.longest_ms < STEP_MAX_MS, steps.what

    run(main())
