"""A caller's mistake raises an error with a clear message, and affects neither this client nor others."""

import asyncio
import re
from datetime import datetime
from typing import Any

import msgspec
import pytest

import gapless.sync
from gapless.client import connect
from gapless.errors import CallError, ClosedError, EventError
from gapless.protocol import Publish
from gapless.runtime.event_loop import run
from tests.client.take_helpers import take
from tests.runtime.local import local

HALF = "\udce9"

MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "a lone surrogate in an attribute": (
        lambda c: c.publish({"file": f"{HALF}t.txt"}), EventError, r"attribute 'file' contains '\udce9', half of",
    ),
    "a lone surrogate in a name": (
        lambda c: c.publish({HALF: 1}), EventError, r"the name of an attribute contains '\udce9'",
    ),
    "a lone surrogate in one of many": (
        lambda c: c.publish_many([{"n": 1}, {"file": HALF}]), EventError, "attribute 'file' contains",
    ),
    "a lone surrogate in a filter": (
        lambda c: c.subscribe(f"topic = '{HALF}'"), CallError, r"a filter contains '\udce9', half of",
    ),
    "a lone surrogate in an advertisement": (
        lambda c: c.advertise(f"topic = '{HALF}'"), CallError, r"a filter contains '\udce9', half of",
    ),
    "nothing published": (lambda c: c.publish(None), EventError, "attributes must be a dictionary, such as {'topic': "),
    "text published": (lambda c: c.publish("price"), EventError, "but this is a str"),
    "a payload of text": (lambda c: c.publish({}, "text"), EventError, "must be bytes, but this is a str; encode"),
    "a payload of a number": (lambda c: c.publish({}, 5), EventError, "a payload must be bytes, but this is an int"),
    "three parts": (lambda c: c.publish_many([({}, b"", 1)]), EventError, "but this has 3 parts"),
    "nothing to iterate over": (lambda c: c.publish_many(None), EventError, "an iterable of events, but this is None"),
    "a name that is a number": (lambda c: c.publish({1: 2}), EventError, "the attribute name 1 is not a string"),
    "no filter": (lambda c: c.subscribe(None), CallError, "a filter must be text, but is None"),
    "no filter to advertise": (lambda c: c.advertise(5), CallError, "a filter must be text, but is of type int"),
    "a reason to replace": (
        lambda c: c.durable("n", "TRUE", replace="yes"), CallError, "replace must be True or False, but is of",
    ),
    "half a group": (lambda c: c.durable("n", "TRUE", group=None), CallError, "group must be True or False, but"),
    "a name on two lines": (lambda c: c.durable("a\nb", "TRUE"), CallError, r"subscription is 'a\nb', but must"),
    "the first of all years": (
        lambda c: c.subscribe("TRUE", since=datetime.min), CallError, "which precedes all positions",
    ),
    "the last of all years": (lambda c: c.read("TRUE", until=datetime.max), CallError, "which is in the future"),
    "a long story": (lambda c: c.read("TRUE", since="x" * 100_000), CallError, "xxx...xxx"),
    "nothing to withdraw": (
        lambda c: c.unadvertise(None), CallError, "must be an object that advertise() returned, but is None",
    ),
    "nothing to end": (
        lambda c: c.unsubscribe(5), CallError, "must be an object that subscribe() returned, but is of type int",
    ),
    "an archive that is a number": (
        lambda c: c.archive(5).subscribe("TRUE", since="1m"), CallError, "archive must be a path, but is of type int",
    ),
    "an archive nowhere": (lambda c: c.archive("a\0b").read("TRUE"), CallError, r"archive is 'a\x00b', which"),
    "half a queue": (lambda c: c.subscribe("TRUE", max_pending=1.5), CallError, "max_pending must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_application_raises_an_error_and_the_client_continues(mistake: str) -> None:
    act, kind, complaint = MISTAKES[mistake]

    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client, asyncio.timeout(20):
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            with pytest.raises(kind, match=re.escape(complaint)):
                await act(client)
            event = await client.publish({"n": 2})
            assert (await take(subscription, event.seq))[-1] == event

    run(main())


@pytest.mark.parametrize("library", [gapless, gapless.sync], ids=["asyncio", "sync"])
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"timeout_s": -1}, "timeout_s must be 0 or more, but is -1"),
        ({"timeout_s": float("nan")}, "timeout_s must be 0 or more, but is nan"),
        ({"timeout_s": None}, "timeout_s must be a number of seconds, but is None"),
        ({"url": None}, "connect() needs the address of a network: pass a URL, or set GAPLESS_URL"),
        ({"name": HALF}, "a client's name contains"),
        ({"name": ""}, "a client's name has 1 to 150 characters"),
        ({"name": "a\0"}, "a client's name is 'a\\x00', but must contain only printable"),
    ],
)
def test_an_error_while_connecting_is_an_error_of_ours(library: Any, arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CallError, match=re.escape(complaint)):
        library.connect(**{"url": "gapless://127.0.0.1:1", **arguments})


def test_text_counts_by_its_bytes_and_names_count() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            await client.publish({"text": "ü" * 32_000})
            for attributes in ({"text": "ü" * 33_000}, {"n" * 65_536: 1}):
                with pytest.raises(EventError, match="65,536 is the limit; make it smaller, or raise event_max"):
                    await client.publish(attributes)
            await client.publish({"n": 1}, bytearray(b"bytes"))
            subscription = await client.subscribe("TRUE")
            await client.publish({"n": 1}, memoryview(b"bytes"))
            assert (await take(subscription, 1))[0].payload == b"bytes"

    run(main())


def test_unsendable_messages_end_every_call_with_an_error() -> None:
    """If a message passes all checks but cannot be sent, every call ends instead of waiting for an answer."""

    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(20):
            client = await connect(network.url)
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            taking = asyncio.create_task(subscription.take())
            publishing = asyncio.create_task(client.publish({"n": 1}))
            await asyncio.sleep(0)
            client._connection_manager._links.give(Publish({"what": object()}))  # type: ignore[dict-item]
            for waiting in (taking, publishing):
                with pytest.raises(ClosedError, match="the client failed, because a message cannot be encoded"):
                    await waiting
            for call in (client.publish({"n": 2}), client.subscribe("TRUE"), client.advertise("TRUE")):
                with pytest.raises(ClosedError, match="a message cannot be encoded"):
                    await call
            assert not client.is_connected
            await client.close()

    run(main())


def test_a_failing_node_ends_every_call_with_a_reason() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, asyncio.timeout(20):
            client = await connect(network.url)
            await client.advertise("TRUE")
            publishing = asyncio.create_task(client.publish({"n": 1}))
            await asyncio.sleep(0)
            client._connection_manager._links.give(msgspec.Struct())  # type: ignore[arg-type]
            with pytest.raises(ClosedError, match="the client failed: AssertionError"):
                await publishing
            with pytest.raises(ClosedError, match="the client failed: AssertionError"):
                await client.publish({"n": 2})
            await client.close()
            assert not client.is_connected

    run(main())
