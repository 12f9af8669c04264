"""Users over HTTPS: tokens, client certificates, permissions, and changes while streams are open."""

import asyncio
from pathlib import Path
from typing import Any

from gapless.overlay import chain
from gapless.runtime.event_loop import run
from tests.runtime.secure import secure

from .serving import first, serving_secure, sse, trusting

USERS: dict[str, dict[str, Any]] = {
    "ann": {"publish": ["topic = 'order'"], "subscribe": ["topic = 'order'"], "history": True, "named": True},
    "bob": {"subscribe": ["topic = 'order'"]},
    "eve": {},
    "ops": {"status": True},
}


def test_each_user_may_do_what_its_filters_allow(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users=USERS) as network, serving_secure(network) as http:
            context = trusting(tmp_path)
            ann, bob, eve, nobody = (
                http.client("b0", token=network.token(name) if name else "", verify=context)
                for name in ("ann", "bob", "eve", "")
            )
            event = {"attributes": {"topic": "order"}, "id": "1"}
            assert (await ann.post("/events", json=event)).status_code == 201
            unknown = await nobody.post("/events", json=event)
            assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, 'Bearer realm="gapless"')
            assert "Authorization: Bearer TOKEN" in unknown.json()["detail"]
            wrong = await nobody.post("/events", json=event, headers={"Authorization": "Bearer ann:wrong"})
            assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
            for client in (bob, eve):
                refused = await client.post("/events", json=event)
                assert (refused.status_code, refused.json()["type"]) == (403, "/docs/problems#denied"), refused.text
            outside = await ann.post("/events", json={"attributes": {"topic": "price"}})
            assert outside.status_code == 422
            for client, params, status in (
                (eve, {}, 403),
                (bob, {"filter": "TRUE"}, 403),
                (bob, {"filter": "topic = 'order'", "since": "1h"}, 403),
                (bob, {"filter": "topic = 'order'", "durable": "x"}, 403),
            ):
                assert (await client.get("/events", params=params)).status_code == status, params
            assert (await nobody.get("/healthz")).status_code == 200
            assert (await nobody.get("/metrics")).status_code == 401
            assert (await ann.get("/metrics")).status_code == 403
            ops = http.client("b0", token=network.token("ops"), verify=context)
            for path in ("/metrics", "/api/log", "/api/log?broker=b1", "/api/samples", "/api/network", "/api/sessions"):
                assert (await ops.get(path)).status_code == 200, path
                assert (await ann.get(path)).status_code == 403, path
                assert (await nobody.get(path)).status_code == 401, path

    run(main())


def test_a_user_without_history_still_gets_live_events_but_no_ids(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users=USERS) as network, serving_secure(network) as http:
            context = trusting(tmp_path)
            ann = http.client("b1", token=network.token("ann"), verify=context)
            bob = http.client("b0", token=network.token("bob"), verify=context)
            messages = sse(bob, {"filter": "topic = 'order'"})
            assert (await anext(messages)).id == ""
            await ann.post("/events", json={"attributes": {"topic": "order"}})
            [message] = await first(messages, 1)
            assert message.id == ""
            assert message.data["publisher"].startswith("ann:http-")

    run(main())


def test_a_certificate_proves_a_user_and_its_grant_ends_with_the_stream(tmp_path: Path) -> None:
    users = USERS | {"cy": {"publish": ["TRUE"], "subscribe": ["TRUE"], "history": True, "certificate": True}}

    async def main() -> None:
        async with secure(chain(2), tmp_path, users=users) as network, serving_secure(network) as http:
            shown = network.certified("cy")
            cy = http.client("b0", verify=trusting(tmp_path, shown.certificate, shown.key))
            answer = await cy.post("/events", json={"attributes": {"topic": "x"}})
            assert answer.json()["id"].startswith("cy:http-")
            messages = sse(cy, {"since": "earliest"})
            assert len(await first(messages, 1)) == 1
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            assert len(broker_security._grants) == 2
            await messages.aclose()  # type: ignore[attr-defined]
            async with asyncio.timeout(20):
                while len(broker_security._grants) > 1:
                    await asyncio.sleep(0.05)
            broker = network.certified("b0", kind="broker")
            by_broker = http.client("b0", verify=trusting(tmp_path, broker.certificate, broker.key))
            assert (await by_broker.post("/events", json={"attributes": {}})).status_code == 403
            invented = await http.client("b0", token="grant.x", verify=trusting(tmp_path)).get("/metrics")
            assert invented.status_code == 401

    run(main())


def test_lost_rights_of_a_user_end_its_streams_and_publications(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users=USERS) as network, serving_secure(network) as http:
            ann = http.client("b0", token=network.token("ann"), verify=trusting(tmp_path))
            messages = sse(ann, {"filter": "topic = 'order'"})
            await anext(messages)
            event = {"attributes": {"topic": "order"}}
            assert (await ann.post("/events", json=event)).status_code == 201
            network.set_users(USERS | {"ann": USERS["ann"] | {"publish": [], "subscribe": ["topic = 'price'"]}})
            [problem] = await first(messages, 1, "problem")
            assert problem.data["status"] == 403
            assert (await ann.post("/events", json=event)).status_code == 403

    run(main())


def test_the_limits_of_a_user_hold_over_http(tmp_path: Path) -> None:
    everything = {"publish": ["TRUE"], "subscribe": ["TRUE"], "history": True}
    users = {"ann": everything | {"limits": {"subscriptions": 1, "publications_per_s": 40}}, "bob": everything}

    async def main() -> None:
        async with secure(1, tmp_path, f=0, users=users) as network, serving_secure(network) as http:
            context = trusting(tmp_path)
            ann, bob = (http.client("b0", token=network.token(name), verify=context) for name in ("ann", "bob"))
            messages = sse(ann, {})
            await anext(messages)
            refused = await ann.get("/events")
            assert (refused.status_code, refused.json()["type"]) == (403, "/docs/problems#denied")
            assert "subscriptions" in refused.json()["detail"]
            begun = asyncio.get_running_loop().time()
            batch = [{"attributes": {"n": n}} for n in range(50)]
            for _ in range(3):
                assert (await ann.post("/events", json=batch)).status_code == 201
            slow = asyncio.get_running_loop().time() - begun
            assert slow > 1.5  # 150 events at 40 per second, of which the first second is free
            begun = asyncio.get_running_loop().time()
            assert (await bob.post("/events", json=batch * 3)).status_code == 201
            assert asyncio.get_running_loop().time() - begun < slow
            await messages.aclose()  # type: ignore[attr-defined]

    run(main())
