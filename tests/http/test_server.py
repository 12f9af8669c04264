"""The HTTP server's answers for all callers, and the limits on its peers."""

import asyncio
import json

import pytest

from gapless.http import server as server_module
from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .serving import serving


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/status", "/nothing"])
def test_head_is_answered_as_get_is_without_the_body(path: str) -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            answer = await client.get(path)
            head = await client.head(path)
            assert (head.status_code, head.content) == (answer.status_code, b"")
            assert len(answer.content) > 0

    run(main())


def test_health_metrics_and_status() -> None:
    async def main() -> None:
        async with serving(chain(2)) as http:
            client = http.client("b0")
            health = await client.get("/healthz")
            assert (health.status_code, health.text) == (200, "ok\n")
            metrics = await client.get("/metrics")
            assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert "gapless_up 1.0" in metrics.text
            status = (await client.get("/status")).json()
            assert (status["broker"], status["up"]) == ("b0", True)
            assert status["turns"]["longest_ms"] > 0

    run(main())


def test_a_broker_that_does_not_take_part_is_not_healthy() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            broker = http.network.brokers["b0"]
            broker._is_ready = False
            answer = await http.client("b0").get("/healthz")
            assert (answer.status_code, answer.text) == (503, "not ready\n")
            broker._is_ready = True

    run(main())


def test_errors_are_problem_documents() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            missing = await client.get("/nothing")
            assert missing.headers["content-type"] == "application/problem+json"
            assert missing.json() == {
                "type": "/docs/problems#not-found",
                "title": "There is no such resource",
                "status": 404,
                "detail": "there is nothing at /nothing; /openapi.json lists the available paths",
                "instance": "/nothing",
            }
            wrong = await client.put("/events")
            assert (wrong.status_code, wrong.json()["status"]) == (405, 405)
            assert wrong.headers["allow"] == "GET, HEAD, POST"

    run(main())


def test_a_bug_is_one_line_of_the_log_and_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            monkeypatch.setattr(http.network.brokers["b0"], "report", lambda: 1 / 0)
            answer = await http.client("b0").get("/status")
            assert (answer.status_code, answer.json()["type"]) == (500, "/docs/problems#failed")
            assert "Zero" not in answer.text

    run(main())


async def _ended(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionError:
        return b""


def test_a_silent_peer_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PATIENCE_S", 0.2)

    async def main() -> None:
        async with serving(1, f=0) as http:
            for words in (b"", b"GET /healthz HTTP/1.1\r\nHost: x"):
                reader, writer = await asyncio.open_connection("127.0.0.1", http.servers["b0"].port)
                writer.write(words)
                assert await _ended(reader) == b""
                writer.close()

    run(main())


def test_of_many_silent_peers_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SILENT_MAX", 3)
    monkeypatch.setattr(server_module, "PATIENCE_S", 60)

    async def main() -> None:
        async with serving(1, f=0) as http:
            port = http.servers["b0"].port
            peers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            assert await _ended(peers[0][0]) == b""
            assert (await http.client("b0").get("/healthz")).status_code == 200
            for _, writer in peers:
                writer.close()

    run(main())


def test_a_peer_that_dribbles_after_its_first_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PATIENCE_S", 0.4)

    async def main() -> None:
        async with serving(1, f=0) as http:
            for words in (
                b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", http.servers["b0"].port)
                writer.write(words)
                await reader.readuntil(b"\r\n\r\n")
                reading = asyncio.ensure_future(_ended(reader))
                async with asyncio.timeout(10):
                    while not reading.done():
                        writer.write(b"G")
                        await asyncio.sleep(0.05)
                writer.close()

    run(main())


def test_of_many_idle_connections_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "IDLE_MAX", 3)

    async def main() -> None:
        async with serving(1, f=0) as http:
            peers = []
            for _ in range(4):
                reader, writer = await asyncio.open_connection("127.0.0.1", http.servers["b0"].port)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await reader.readuntil(b"ok\n")
                peers.append((reader, writer))
            assert await _ended(peers[0][0]) == b""
            for _, writer in peers:
                writer.close()

    run(main())


def test_invalid_http_is_answered_with_a_problem_document() -> None:
    heads = (
        b"Content-Length: 2\r\nContent-Length: 20\r\n", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: -5\r\n", b"Transfer-Encoding: xchunked\r\n", b"A: b\r\n c\r\n", b"A : b\r\n", b"A: \x00\r\n",
        b"".join(b"A%d: b\r\n" % number for number in range(6_000)),
    )  # fmt: skip

    async def main() -> None:
        async with serving(1, f=0) as http:
            for head in heads:
                reader, writer = await asyncio.open_connection("127.0.0.1", http.servers["b0"].port)
                writer.write(b"POST /events HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n{}")
                answer = await _ended(reader)
                assert answer.startswith(b"HTTP/1.1 400 "), head[:50]
                assert b"Content-Type: application/problem+json\r\n" in answer
                assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "/docs/problems#bad-request"
                writer.close()

    run(main())


def test_files_outside_of_the_console_are_not_served() -> None:
    paths = (
        "/console/../server.py", "/console/%2e%2e%2fserver.py", "/console/%252e%252e%252fserver.py",
        "/console//etc/passwd", "/console/..\\server.py", "/console/app.js%00", "/console/%ff", "/console/",
    )  # fmt: skip

    async def main() -> None:
        async with serving(1, f=0) as http:
            for path in paths:
                reader, writer = await asyncio.open_connection("127.0.0.1", http.servers["b0"].port)
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                assert (await _ended(reader)).startswith(b"HTTP/1.1 404 "), path
                writer.close()

    run(main())


def test_a_page_that_gives_its_name_the_address_of_this_machine_gets_nothing() -> None:
    async def main() -> None:
        async with serving(1, f=0, origins=("https://app.example",)) as http:
            client = http.client("b0")
            for path in ("/", "/events", "/api/network", "/status"):
                answer = await client.get(path, headers={"Host": "evil.example:8400"})
                assert (answer.status_code, answer.json()["type"]) == (403, "/docs/problems#wrong-origin"), path
            own = {"Host": "evil.example:8400", "Origin": "http://evil.example:8400"}
            assert (await client.post("/events", json={}, headers=own)).status_code == 403
            for host in ("localhost:8400", "127.0.0.1", "[::1]:8400", "10.0.0.7", "app.example"):
                assert (await client.get("/status", headers={"Host": host})).status_code == 200, host
            assert (await client.get("/healthz", headers={"Host": "evil.example"})).status_code == 200

    run(main())


def test_there_is_always_room_for_a_health_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.http.guards.REQUESTS_MAX", 1)

    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            async with client.stream("GET", "/events") as first:
                assert first.status_code == 200
                refused = await client.get("/status")
                assert (refused.status_code, refused.json()["type"]) == (503, "/docs/problems#too-many")
                assert (await client.get("/healthz")).status_code == 200
            async with asyncio.timeout(20):
                while (await client.get("/status")).status_code == 503:
                    await asyncio.sleep(0.05)

    run(main())


@pytest.mark.parametrize(
    "words", [b"GET /" + b"x" * 70_000, b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000, b"rubbish\r\n\r\n"]
)
def test_malformed_and_oversized_heads_are_refused(words: bytes) -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            reader, writer = await asyncio.open_connection("127.0.0.1", http.servers["b0"].port)
            writer.write(words)
            assert (await _ended(reader)).startswith(b"HTTP/1.1 400 " if len(words) < 100 else b"")
            writer.close()
            assert (await http.client("b0").get("/healthz")).status_code == 200

    run(main())


def test_responses_carry_strict_headers() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            headers = (await http.client("b0").get("/healthz")).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in headers
            assert "access-control-allow-origin" not in headers

    run(main())


def test_pages_of_unlisted_origins_change_nothing() -> None:
    async def main() -> None:
        async with serving(1, f=0, origins=("https://app.example",)) as http:
            client = http.client("b0")
            event = {"attributes": {"topic": "x"}}
            for origin in ("https://evil.example", "null"):
                refused = await client.post("/events", json=event, headers={"Origin": origin})
                assert (refused.status_code, refused.json()["type"]) == (403, "/docs/problems#wrong-origin")
                preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                assert (
                    "access-control-allow-methods" not in (await client.options("/events", headers=preflight)).headers
                )
            hidden = await client.post("/events", json=event, headers={"Sec-Fetch-Site": "cross-site"})
            assert hidden.status_code == 403
            listed = await client.post("/events", json=event, headers={"Origin": "https://app.example"})
            assert listed.status_code == 201
            assert listed.headers["access-control-allow-origin"] == "https://app.example"
            preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
            assert (
                "POST" in (await client.options("/events", headers=preflight)).headers["access-control-allow-methods"]
            )
            own = await client.post("/events", json=event, headers={"Origin": http.url("b0")})
            assert own.status_code == 201

    run(main())


def test_more_requests_than_there_is_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.http.clients.STREAMS_MAX", 1)

    async def main() -> None:
        async with serving(1, f=0) as http:
            client = http.client("b0")
            async with client.stream("GET", "/events") as first:
                assert first.status_code == 200
                refused = await client.get("/events")
                assert (refused.status_code, refused.json()["type"]) == (503, "/docs/problems#too-many")
            async with asyncio.timeout(20):
                while (await client.get("/events", params={"since": "earliest", "until": "now"})).status_code == 503:
                    await asyncio.sleep(0.05)

    run(main())
