"""The client library with real brokers on loopback: the guarantees and errors of each call."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.client import Client, connect
from gapless.errors import CallError, ClosedError, ConfigError, ConnectError, EventError, FilterError, SlowConsumerError
from gapless.events import Event
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import free_ports
from tests.client.take_helpers import take
from tests.runtime.local import local
from tests.runtime.test_backpressure import until

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", [gapless.client.__doc__ or "", README], ids=["package", "README"])
def test_the_examples_run(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = document.split("```python\n")[1].split("```")[0]

    async def main() -> None:
        async with local(1, f=0) as network:
            program: dict[str, Any] = {}
            exec(text.replace("gapless://127.0.0.1:7400", network.url).replace("asyncio.run(main())", ""), program)
            await program["main"]()

    run(main())
    assert re.fullmatch(r"client-\w+:1 \{'topic': 'price', 'amount': 7\} b'any bytes'\n", capsys.readouterr().out)


def test_one_address_is_enough_and_the_others_are_learnt() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b1"), name="ann") as client:
            assert client.name.startswith("ann-")
            assert client.network == "local"
            assert client.protocol == "gapless"
            assert set(client._connection_manager._links.addresses) == {"b0", "b1", "b2"}
            await client.advertise("TRUE")
            assert client.is_connected

    run(main())


def test_a_subscription_knows_its_starting_and_its_ending_cut() -> None:
    async def main() -> None:
        async with local(chain(3)) as network, connect(network.at("b0")) as ann, connect(network.at("b2")) as bob:
            await ann.advertise("topic = 'price'")
            for amount in range(3):
                await ann.publish({"topic": "price", "amount": amount})
            subscription = await bob.subscribe("topic = 'price' AND amount < 10")
            assert subscription.starting_cut == {ann.name: 4}
            assert subscription.ending_cut is None
            events = [await ann.publish({"topic": "price", "amount": amount}) for amount in (7, 20, 8)]
            assert await take(subscription, 2) == [events[0], events[2]]
            await subscription.close()
            assert subscription.ending_cut == {ann.name: 6}
            assert await subscription.take() == []
            assert [event async for event in subscription] == []

    run(main())


def test_events_carry_attributes_of_every_type_and_any_payload() -> None:
    facts = {"text": "ü", "whole": -(2**63), "half": 0.5, "nan": float("inf"), "yes": True}

    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("yes AND whole < 0")
            sent = await client.publish(facts, bytes(range(256)))
            [got] = await take(subscription, 1)
            assert got == sent
            assert (got.attributes, got.payload) == (facts, bytes(range(256)))
            assert [type(value) for value in got.attributes.values()] == [str, int, float, float, bool]

    run(main())


def test_values_that_are_equal_and_not_the_same_arrive_as_they_were_published() -> None:
    values = [0.0, -0.0, 0.0, 0, False, 1, 1.0, True, -0.0, float("nan"), 2**63 - 1, -(2**63)]

    async def main() -> None:
        async with local(chain(2)) as network, connect(network.at("b0")) as ann, connect(network.at("b1")) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            await ann.publish_many({"x": value} for value in values)
            assert [repr(event.attributes["x"]) for event in await take(subscription, len(values))] == [
                *map(repr, values)
            ]

    run(main())


def test_many_events_in_order_and_once() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, connect(network.at("b0")) as ann, connect(network.at("b1")) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("n >= 0")
            publishing = asyncio.create_task(ann.publish_many(({"n": n}, b"x" * 100) for n in range(3_000)))
            events = await take(subscription, 3_000)
            assert [event.attributes["n"] for event in events] == list(range(3_000))
            assert await publishing == 3_000
            assert ann.is_all_confirmed
            assert (ann.broker, bob.broker) == ("b0", "b1")

            async def numbers() -> Any:
                for n in range(10):
                    yield {"n": n}

            assert await ann.publish_many(numbers()) == 10
            assert len(await take(subscription, 10)) == 10

    run(main())


def test_a_slow_source_delays_nothing_and_may_fail() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann:
            await ann.advertise("TRUE")
            subscription = await ann.subscribe("TRUE")
            arrived: list[int] = []

            async def slow() -> AsyncIterator[dict[str, int]]:
                for n in range(3):
                    yield {"n": n}
                    arrived.append((await take(subscription, 1))[0].seq)
                raise ValueError("the source is dry")

            with pytest.raises(ValueError, match="dry"):
                await ann.publish_many(slow())
            assert arrived == [1, 2, 3]

    run(main())


def test_large_events_fit_however_many_are_under_way_and_survive_a_new_connection() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann, connect(network.url) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            payload = b"x" * 65_000
            publishing = asyncio.create_task(ann.publish_many(({"n": n}, payload) for n in range(200)))
            await asyncio.sleep(0.1)
            connection = ann._connection_manager._links.links["b0"].connection
            assert connection is not None
            connection.abort()
            events = await take(subscription, 200)
            assert [event.attributes["n"] for event in events] == list(range(200))
            assert await publishing == 200

    run(main())


def test_publications_from_many_tasks_are_all_confirmed() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            events = await asyncio.gather(*(client.publish({"n": n}) for n in range(2_500)))
            assert sorted(event.seq for event in events) == list(range(1, 2_501))

    run(main())


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "a filter that cannot be read": (lambda c: c.subscribe("price <"), FilterError, "price <"),
    "a filter of an advertisement that cannot be read": (lambda c: c.advertise("= 1"), FilterError, "= 1"),
    "outside its advertisement": (lambda c: c.publish({"topic": "other"}), EventError, "none of your advertisements"),
    "one of many outside its advertisement": (
        lambda c: c.publish_many([{"topic": "price"}, {"topic": "other"}]), EventError, "none of your advertisements",
    ),
    "null": (lambda c: c.publish({"topic": None}), EventError, "attribute 'topic' is of type NoneType"),
    "a list": (lambda c: c.publish({"topic": "price", "x": [1]}), EventError, "put anything else into the payload"),
    "a number too large": (lambda c: c.publish({"x": 2**63}), EventError, "does not fit into a signed 64-bit integer"),
    "a number too small": (lambda c: c.publish({"x": -(2**63) - 1}), EventError, "publish it as a string"),
    "too many bytes": (lambda c: c.publish({"topic": "price"}, b"x" * 65_536), EventError, "65,536 is the limit"),
    "no room at all": (lambda c: c.subscribe("TRUE", max_pending=0), CallError, "max_pending must be positive"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_a_sentence_and_harm_nothing(mistake: str) -> None:
    act, kind, complaint = MISTAKES[mistake]

    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("topic = 'price'")
            with pytest.raises(kind, match=re.escape(complaint)):
                await act(client)
            subscription = await client.subscribe("TRUE")
            event = await client.publish({"topic": "price"})
            assert await take(subscription, 1) == [event]

    run(main())


def test_unreachable_brokers_are_listed_with_every_address() -> None:
    first, second = free_ports(2)

    async def main() -> None:
        with pytest.raises(
            ConnectError, match=f"127.0.0.1:{first}: .*refused.*127.0.0.1:{second}: .*is the network up"
        ):
            await connect(f"gapless://127.0.0.1:{first},127.0.0.1:{second}", timeout_s=0.3)
        with pytest.raises(ConfigError, match="names no broker"):
            await connect("gapless://")

    run(main())


@pytest.mark.parametrize("greeting", [b"", b"220 mail.example ESMTP\r\n"], ids=["closes", "mail"])
def test_somebody_else_at_one_address_does_not_keep_a_client_from_the_next(greeting: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with local(1, f=0) as network, connect(f"gapless://127.0.0.1:{port},{network.url[10:]}") as client:
            await client.advertise("TRUE")
        server.close()

    run(main())


def test_a_client_waits_for_a_network_that_is_about_to_start() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            await network.stop()
            connecting = asyncio.ensure_future(connect(network.url, timeout_s=10))
            await asyncio.sleep(0.3)
            await network.start("b0")
            client = await connecting
            await client.advertise("TRUE")
            await client.close()

    run(main())


def test_closed_objects_raise_an_error() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            client = await connect(network.url)
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            waiting = asyncio.create_task(subscription.take())
            await asyncio.sleep(0)
            await client.close()
            await client.close()
            assert await waiting == []
            for call in (client.publish({"a": 1}), client.subscribe("TRUE"), client.advertise("TRUE")):
                with pytest.raises(ClosedError, match="the client is closed"):
                    await call

    run(main())


def test_an_error_in_the_middle_leaves_in_good_order() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:

            async def stumble() -> None:
                async with connect(network.url) as client:
                    await client.subscribe("TRUE")
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await stumble()
            broker = network.brokers["b0"]
            async with asyncio.timeout(5):
                while broker.links.client_count:
                    await asyncio.sleep(0.01)

    run(main())


def test_a_cancelled_call_leaves_no_state() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, connect(network.at("b0")) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await client.subscribe("TRUE")
            await client.advertise("TRUE")
            assert client._connection_manager.registrations.subscriptions == {}
            node = client._connection_manager._links.host.node
            assert node is not None
            async with asyncio.timeout(5):
                while node.state_size()["subscriptions"]:
                    await asyncio.sleep(0.01)

    run(main())


# ---- slow consumers ---------------------------------------------------------------------------------------


def test_a_stalled_consumer_delays_no_other_and_memory_does_not_grow() -> None:
    async def main() -> None:
        opening = local(chain(2), delivery_window=64, lag_window=200, wave_ms=20)
        async with opening as network, connect(network.at("b0")) as ann, connect(network.at("b1")) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            assert await ann.publish_many({"n": n} for n in range(1_500)) == 1_500
            await until(lambda: not subscription.is_live)
            assert 0 < len(subscription._pending_events) <= 64
            nodes = [broker.links.host.node for broker in network.brokers.values()]
            await until(lambda: all(node is not None and node.state_size()["retained"] <= 200 for node in nodes))
            events = await take(subscription, 1_500)
            assert [event.attributes["n"] for event in events] == list(range(1_500))
            await until(lambda: subscription.is_live)

    run(main())


def test_a_consumer_that_answers_does_not_lock_itself_out() -> None:
    """The consumer waits for its own confirmations while more events arrive than it may hold."""

    async def main() -> None:
        opening = local(1, f=0, window=500, delivery_window=16, client_window=100, wave_ms=20)
        async with opening as network, connect(network.url) as ann, connect(network.url) as bob:
            await ann.advertise("question")
            await bob.advertise("NOT question")
            questions = await bob.subscribe("question")
            answers = await ann.subscribe("NOT question")
            asking = asyncio.create_task(ann.publish_many({"question": True, "n": n} for n in range(300)))

            async def answer() -> None:
                async for event in questions:
                    await bob.publish({"question": False, "n": event.attributes["n"]})

            answering = asyncio.create_task(answer())
            got = await take(answers, 300)
            assert [event.attributes["n"] for event in got] == list(range(300))
            await asking
            answering.cancel()

    run(main())


def test_a_slow_subscription_ends_with_an_error_and_delays_no_other() -> None:
    async def main() -> None:
        opening = local(chain(2), window=200, delivery_window=64, wave_ms=20)
        async with opening as network, connect(network.at("b0")) as ann, connect(network.at("b1")) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE", max_pending=10)
            assert await ann.publish_many({"n": n} for n in range(1_000)) == 1_000
            async with asyncio.timeout(10):
                while not subscription.has_ended:
                    await asyncio.sleep(0.01)
            assert [event.attributes["n"] for event in await subscription.take()] == list(range(10))
            with pytest.raises(
                SlowConsumerError,
                match="the subscription to 'TRUE' ended because more than 10 of its events were pending",
            ):
                await anext(subscription)
            again = await bob.subscribe("TRUE")
            event = await ann.publish({"n": 1})
            assert await take(again, 1) == [event]

    run(main())


def test_closing_a_subscription_that_is_not_read_ends_at_an_exact_cut() -> None:
    async def main() -> None:
        opening = local(1, f=0, delivery_window=16, wave_ms=20)
        async with opening as network, connect(network.url) as ann, connect(network.url) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            assert await ann.publish_many({"n": n} for n in range(500)) == 500
            async with asyncio.timeout(10):
                await subscription.close()
            assert subscription.ending_cut is not None
            got = [event.seq async for event in subscription]
            assert got == list(range(1, subscription.ending_cut[ann.name] + 1))
            assert 0 < len(got) < 500

    run(main())


def test_closing_a_client_ends_a_subscription_whose_caller_stopped_waiting() -> None:
    """The caller stops waiting when the durable subscription is attached, but not active yet."""

    async def main() -> None:
        async with local(chain(2)) as network:
            node = network.brokers["b0"].node
            assert node is not None
            async with connect(network.at("b0"), name="ann") as client:
                attaching = asyncio.ensure_future(client.durable("billing", "TRUE"))
                while not client._connection_manager._node.state_size()["subscriptions"]:
                    await asyncio.sleep(0)
                attaching.cancel()
                await asyncio.wait((attaching,))
                assert attaching.cancelled()
            await asyncio.sleep(0.1)
            assert node.held_by(client.name) == {}

    run(main())


def test_a_protocol_that_cannot_hold_back_fails_slow_consumers() -> None:
    async def main() -> None:
        async with local(chain(2), protocol="locaps") as network, connect(network.at("b0")) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            assert not subscription._holds_back
            event = await client.publish({"n": 1})
            assert await take(subscription, 1) == [event]

    run(main())


# ---- fail-over --------------------------------------------------------------------------------------------


async def _attached(client: Client, broker: str) -> bool:
    link = client._connection_manager._links.links.get(broker)
    return link is not None and link.connection is not None


@pytest.mark.parametrize("way", ["crash", "stop"])
def test_a_client_continues_at_another_broker_without_gap_or_duplicate(way: str) -> None:
    async def main() -> None:
        opening = local(chain(4))
        async with opening as network, connect(network.at("b3")) as ann, connect(network.at("b1")) as bob:
            await ann.advertise("TRUE")
            await bob.advertise("answer = TRUE")
            subscription = await bob.subscribe("n >= 0")
            answers = await ann.subscribe("answer = TRUE")

            async def talk() -> None:
                for n in range(400):
                    await ann.publish({"n": n})
                    await asyncio.sleep(0.002)

            talking = asyncio.create_task(talk())
            before = await take(subscription, 50)
            if way == "crash":
                await network.crash("b1")
            else:
                await network.brokers.pop("b1").stop()
            events = before + await take(subscription, 350)
            assert [event.attributes["n"] for event in events] == list(range(400))
            await talking
            async with asyncio.timeout(20):
                sent = await bob.publish({"answer": True})
            assert await take(answers, 1) == [sent]

    run(main())


def test_a_broken_connection_is_re_established_and_nothing_is_missed() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as ann, connect(network.url) as bob:
            await ann.advertise("TRUE")
            subscription = await bob.subscribe("TRUE")
            publishing = asyncio.create_task(ann.publish_many({"n": n} for n in range(20_000)))
            for _ in range(5):
                await asyncio.sleep(0.05)
                for client in (ann, bob):
                    connection = client._connection_manager._links.links["b0"].connection
                    if connection is not None:
                        connection.abort()
            events = await take(subscription, 20_000)
            assert [event.attributes["n"] for event in events] == list(range(20_000))
            assert await publishing == 20_000

    run(main())


def test_giving_up_in_the_moment_of_arrival_loses_nothing() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            waiting = asyncio.create_task(subscription.take())
            await asyncio.sleep(0)
            waiting.cancel()
            subscription._put(1, [Event("p", 1, {})])
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await take(subscription, 1) == [Event("p", 1, {})]

    run(main())
