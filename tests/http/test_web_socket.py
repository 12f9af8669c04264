"""`/ws`: all functions of the gateway over one connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import wsproto
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, RejectConnection, Request, TextMessage

from gapless.http.server import MESSAGE_MAX
from gapless.overlay import chain
from gapless.runtime.event_loop import run

from .serving import Serving, serving
from .test_streams import publisher


class Socket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._protocol = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self._text = ""
        self.closed: int | None = None

    async def open(self, host: str, headers: dict[str, str]) -> None:
        extra = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._writer.write(self._protocol.send(Request(host=host, target="/ws", extra_headers=extra)))
        event = await self._event()
        if isinstance(event, RejectConnection):
            raise ConnectionError(str(event.status_code))
        assert isinstance(event, AcceptConnection)

    async def _event(self) -> Any:
        async with asyncio.timeout(30):
            while True:
                for event in self._protocol.events():
                    return event
                data = await self._reader.read(65_536)
                self._protocol.receive_data(data or None)

    async def send(self, **message: Any) -> None:
        self._writer.write(self._protocol.send(TextMessage(json.dumps(message))))

    async def send_event(self, event: BytesMessage | TextMessage) -> None:
        self._writer.write(self._protocol.send(event))

    async def send_text(self, text: str) -> None:
        self._writer.write(self._protocol.send(TextMessage(text)))

    async def receive(self, op: str = "") -> dict[str, Any]:
        while True:
            event = await self._event()
            if isinstance(event, TextMessage):
                self._text += event.data
                if event.message_finished:
                    found, self._text = json.loads(self._text), ""
                    if not op or found["op"] == op:
                        return dict(found)
            elif isinstance(event, Ping):
                self._writer.write(self._protocol.send(event.response()))
            elif isinstance(event, CloseConnection):
                self.closed = event.code
                raise ConnectionError(f"closed with {event.code}")


@asynccontextmanager
async def web_socket(http: Serving, name: str, **headers: str) -> AsyncIterator[Socket]:
    reader, writer = await asyncio.open_connection("127.0.0.1", http.servers[name].port)
    socket = Socket(reader, writer)
    try:
        await socket.open(http.network.brokers[name].entry.http, headers)
        yield socket
    finally:
        writer.close()


def test_subscribe_publish_and_end() -> None:
    async def main() -> None:
        async with serving(chain(2)) as http, web_socket(http, "b0") as one, web_socket(http, "b1") as two:
            assert await one.receive() == {"op": "hello", "user": "", "network": "local"}
            await one.send(op="subscribe", id="s", filter="n > 0")
            assert (await one.receive())["op"] == "ready"
            for n in range(3):
                await two.send(op="publish", id=str(n), event={"attributes": {"n": n}, "id": f"e{n}"})
            confirmed = [await two.receive("published") for _ in range(3)]
            assert [each["id"] for each in confirmed] == ["0", "1", "2"]
            found = [await one.receive() for _ in range(2)]
            assert [each["event"]["attributes"]["n"] for each in found] == [1, 2]
            assert found[0]["event"]["id"] == confirmed[1]["event"]["id"]
            await two.send(op="publish", id="again", event={"attributes": {"n": 2}, "id": "e2"})
            assert (await two.receive("published"))["event"]["duplicate"] is True
            await two.send(op="subscribe", id="s", resume=found[0]["cursor"], filter="n > 0")
            assert (await two.receive("event"))["event"]["attributes"]["n"] == 2
            await one.send(op="unsubscribe", id="s")
            assert await one.receive() == {"op": "end", "id": "s"}

    run(main())


def test_no_more_is_sent_than_there_is_credit_for() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http, web_socket(http, "b0") as socket:
            ann = await publisher(http, "ann", "b0")
            for n in range(10):
                await ann.publish({"n": n})
            await socket.receive("hello")
            await socket.send(op="subscribe", id="none", since="earliest", credit=0)
            await socket.send(op="subscribe", id="s", since="earliest", credit=1)
            assert (await socket.receive())["id"] == "s"
            seen = [await socket.receive("event")]
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    while True:
                        seen.append(await socket.receive("event"))
            assert {each["id"] for each in seen} == {"s"}
            await socket.send(op="credit", id="none", count=100)
            others = [await socket.receive("event") for _ in range(10)]
            assert {each["id"] for each in others} == {"none"}
            await ann.close()

    run(main())


def test_durable_subscriptions_are_acknowledged() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            ann = await publisher(http, "ann", "b0")
            async with web_socket(http, "b0") as socket:
                await socket.receive("hello")
                await socket.send(op="subscribe", id="s", durable="jobs")
                await socket.receive("ready")
                for n in range(3):
                    await ann.publish({"n": n})
                found = [await socket.receive("event") for _ in range(3)]
                await socket.send(op="ack", id="s", ids=[found[1]["event"]["id"]])
                assert await socket.receive() == {"op": "acknowledged", "id": "s", "count": 2}
            async with web_socket(http, "b0") as socket:
                await socket.receive("hello")
                await socket.send(op="subscribe", id="t", durable="jobs")
                assert (await socket.receive("event"))["event"]["attributes"]["n"] == 2
            await ann.close()

    run(main())


def test_errors_belong_to_their_cause_and_the_rest_continues() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http, web_socket(http, "b0") as socket:
            await socket.receive("hello")
            for message, kind in (
                ({"op": "subscribe", "id": "f", "filter": "n <"}, "invalid-filter"),
                ({"op": "subscribe"}, "bad-request"),
                ({"op": "unsubscribe", "id": "x"}, "not-found"),
                ({"op": "publish", "id": "p"}, "bad-request"),
                ({"op": "ack", "id": "s", "ids": ["x:1"]}, "not-found"),
            ):
                await socket.send(**message)
                answer = await socket.receive("problem")
                assert answer["problem"]["type"].endswith(kind), answer
                assert answer["id"] == message.get("id", "")
            await socket.send_text("{")
            assert (await socket.receive("problem"))["problem"]["status"] == 400
            with pytest.raises(ConnectionError):
                await socket.receive()
            assert socket.closed == 4400

    run(main())


def test_hostile_messages_end_their_own_web_socket_alone() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http, web_socket(http, "b0") as other:
            await other.receive("hello")
            for message, code in (
                (BytesMessage(b"abc"), 4400),
                (TextMessage('{"op":"publish","event":{"data":' + "[" * 50_000 + "]" * 50_000 + "}}"), 4400),
                (TextMessage("[" * (MESSAGE_MAX + 1)), 1009),
            ):
                async with web_socket(http, "b0") as socket:
                    await socket.receive("hello")
                    await socket.send_event(message)
                    with pytest.raises(ConnectionError):
                        await socket.receive("nothing")
                    assert socket.closed == code
            await other.send(op="publish", id="1", event={"text": "x"})
            assert (await other.receive())["op"] == "published"
            async with web_socket(http, "b0", **{"Sec-WebSocket-Extensions": "permessage-deflate"}) as socket:
                assert (await socket.receive())["op"] == "hello"  # and the message is not compressed

    run(main())


def test_there_are_no_more_web_sockets_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.http.guards.SOCKETS_MAX", 2)

    async def main() -> None:
        async with serving(1, f=0) as http, web_socket(http, "b0"):
            async with web_socket(http, "b0"):
                with pytest.raises(ConnectionError, match="503"):
                    async with web_socket(http, "b0"):
                        pass
                assert (await http.client("b0").get("/healthz")).status_code == 200
            async with asyncio.timeout(20):
                while True:
                    with suppress(ConnectionError):
                        async with web_socket(http, "b0"):
                            return
                    await asyncio.sleep(0.05)

    run(main())


def test_pages_of_other_origins_open_no_web_socket() -> None:
    async def main() -> None:
        async with serving(1, f=0) as http:
            with pytest.raises(ConnectionError, match="403"):
                async with web_socket(http, "b0", Origin="https://evil.example"):
                    pass
            async with web_socket(http, "b0", Origin=http.url("b0")) as socket:
                assert (await socket.receive())["op"] == "hello"

    run(main())
