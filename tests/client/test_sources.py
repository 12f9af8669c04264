"""Sources of events may be slow, wait for the network, or fail; their events are sent as they are produced."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import gapless.sync
from gapless.client import connect
from gapless.errors import CallError, ClosedError, EventError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from tests.client.take_helpers import take
from tests.runtime.local import QUICK, local


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = local_network(chain(2), runtime=QUICK)
    with Fleet(config, tmp_path_factory.mktemp("fleet")) as fleet:
        fleet.start_all()
        gapless.sync.connect(config.url, timeout_s=60).close()
        yield config.url


# ---- without an event loop --------------------------------------------------------------------------------


def test_a_generator_runs_in_the_callers_thread_and_may_wait_for_its_own_events(url: str) -> None:
    """The generator waits for each event to return before it yields the next, so the client must send each at once."""
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        subscription = client.subscribe("n >= 0")
        threads: set[threading.Thread] = set()
        seen: list[Any] = []

        def echoes() -> Iterator[dict[str, int]]:
            for n in range(20):
                threads.add(threading.current_thread())
                yield {"n": n}
                seen.extend(event.attributes["n"] for event in subscription.take(timeout_s=20))

        assert client.publish_many(echoes()) == 20
        assert threads == {threading.current_thread()}
        assert seen == list(range(20))


def test_a_generator_that_takes_its_time_does_not_make_the_client_look_dead(url: str) -> None:
    """The generator takes three times as long as a broker waits before it suspects a client."""
    with gapless.sync.connect(url) as ann, gapless.sync.connect(url) as bob:
        ann.advertise("TRUE")
        subscription = bob.subscribe("TRUE")

        def slow() -> Iterator[dict[str, int]]:
            yield {"n": 1}
            arrived = subscription.take(timeout_s=20)
            assert [event.attributes["n"] for event in arrived] == [1]
            time.sleep(3 * QUICK.suspect_ms / 1000)
            assert ann.is_connected
            yield {"n": 2}

        assert ann.publish_many(slow()) == 2


def test_a_generator_that_fails_has_published_what_it_gave(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        subscription = client.subscribe("TRUE")

        def dry() -> Iterator[dict[str, int]]:
            yield from ({"n": n} for n in range(300))
            raise ValueError("the source is dry")

        with pytest.raises(ValueError, match="dry"):
            client.publish_many(dry())
        assert [next(subscription).attributes["n"] for _ in range(300)] == list(range(300))
        with pytest.raises(EventError, match="attribute 'n' is of type list"):
            client.publish_many([{"n": 300}, {"n": []}, {"n": 301}])
        assert next(subscription).attributes == {"n": 300}
        with pytest.raises(TimeoutError):
            subscription.take(timeout_s=0.2)
        with pytest.raises(EventError, match="takes an iterable of events, but this is None"):
            client.publish_many(None)  # type: ignore[arg-type]


def test_an_endless_source_ends_when_the_client_is_closed(url: str) -> None:
    client = gapless.sync.connect(url)
    client.advertise("TRUE")
    given = threading.Event()

    def endless() -> Iterator[dict[str, int]]:
        n = 0
        while True:
            n += 1
            if n > 1_000:
                given.set()
            yield {"n": n}

    errors: list[Exception] = []

    def publish() -> None:
        try:
            client.publish_many(endless())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=publish)
    thread.start()
    assert given.wait(20)
    client.close()
    thread.join(20)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [ClosedError]


def test_many_threads_publish_and_iterate_at_once(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        subscription = client.subscribe("TRUE")
        got: list[int] = []

        def consume() -> None:
            for event in subscription:
                got.append(event.attributes["n"])  # type: ignore[arg-type]

        consumers = [threading.Thread(target=consume) for _ in range(3)]
        producers = [
            threading.Thread(target=client.publish_many, args=([{"n": 1_000 * k + n} for n in range(500)],))
            for k in range(3)
        ]
        for thread in consumers + producers:
            thread.start()
        for thread in producers:
            thread.join(60)
        deadline = time.monotonic() + 20
        while len(got) < 1_500 and time.monotonic() < deadline:
            time.sleep(0.01)
        subscription.close()
        for thread in consumers:
            thread.join(20)
        assert sorted(got) == [1_000 * k + n for k in range(3) for n in range(500)]


def test_the_end_of_an_event_loop_cancels_all_waits(url: str) -> None:
    client = gapless.sync.connect(url)
    client.advertise("TRUE")
    subscription = client.subscribe("TRUE")
    errors: list[Exception] = []

    def wait() -> None:
        try:
            subscription.take()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)

    def end() -> None:
        raise SystemExit("enough")

    client._loop.loop.call_soon_threadsafe(end)
    thread.join(20)
    assert not thread.is_alive()
    assert "the client's event loop ended: SystemExit('enough')" in str(errors[0])
    with pytest.raises(ClosedError, match="the client's event loop ended"):
        client.publish({"n": 1})
    with pytest.raises(ClosedError, match="the client's event loop ended"):
        client.publish_many({"n": n} for n in range(10_000))
    client.close()


def test_a_call_from_the_clients_own_thread_is_refused_and_not_waited_for(url: str) -> None:
    with gapless.sync.connect(url) as client:
        reported: list[Exception] = []
        done = threading.Event()

        def call() -> None:
            try:
                client.publish({"n": 1})
            except CallError as error:
                reported.append(error)
            done.set()

        client._loop.loop.call_soon_threadsafe(call)
        assert done.wait(20)
        assert "would wait for the thread that it runs in" in str(reported[0])


def test_a_forked_process_cannot_use_the_client_of_its_parent(url: str) -> None:
    with gapless.sync.connect(url) as client:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                client.advertise("TRUE")
            except ClosedError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        assert b"forked from; connect again here" in os.read(reading, 1_000)
        os.close(reading)
        client.advertise("TRUE")
        client.publish({"n": 1})


# ---- with an event loop -----------------------------------------------------------------------------------


def test_an_ordinary_generator_that_takes_its_time_lets_the_loop_turn_between_events(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            turns = 0
            given: list[int] = []

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            def slow() -> Iterator[dict[str, int]]:
                for n in range(6):
                    time.sleep(0.02 if n else 0.6)
                    given.append(turns)
                    yield {"n": n}

            counting = asyncio.create_task(count())
            await asyncio.sleep(0)
            assert await client.publish_many(slow()) == 6
            counting.cancel()
            assert given == sorted(set(given)), "the loop turned between any two"

    with caplog.at_level(logging.WARNING, "gapless.client"):
        run(main())
    [reported] = [record.message for record in caplog.records if "async iterable" in record.message]
    assert reported.startswith("publish_many waited ")


def test_a_quick_generator_is_published_in_large_batches() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            frames = network.brokers["b0"].links.counters.frames_in
            assert await client.publish_many({"n": n} for n in range(5_000)) == 5_000
            assert network.brokers["b0"].links.counters.frames_in - frames < 200

    run(main())


def test_an_async_source_that_is_cancelled_ends_the_call() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client, asyncio.timeout(20):
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")

            async def cancelled() -> AsyncIterator[dict[str, int]]:
                yield {"n": 1}
                raise asyncio.CancelledError

            with pytest.raises(asyncio.CancelledError):
                await client.publish_many(cancelled())
            assert (await take(subscription, 1))[0].attributes == {"n": 1}

    run(main())


def test_events_before_an_invalid_one_are_published() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, connect(network.url) as client:
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            events: list[Any] = [{"n": 1}, {"n": 2}, {"n": []}, {"n": 3}]
            with pytest.raises(EventError, match="attribute 'n' is of type list"):
                await client.publish_many(events)
            assert [event.attributes["n"] for event in await take(subscription, 2)] == [1, 2]
            last = await client.publish({"n": 4})
            assert await take(subscription, 1) == [last]

    run(main())
