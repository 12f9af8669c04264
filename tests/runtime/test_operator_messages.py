"""Log messages for operators: waits with their reasons, departures, and the state of a broker, at a limited rate."""

import asyncio
import json
import logging
import re
import urllib.error
import urllib.request
from http.client import HTTPResponse
from typing import Any

import msgspec
import pytest

from gapless.client import connect
from gapless.errors import StorageError
from gapless.overlay import chain
from gapless.protocol import Suspected
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import free_ports, local_network
from gapless.runtime.http_endpoint import HttpEndpoint
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.process import run_broker

from .local import QUICK, Local, local
from .logged import Logged, logged
from .test_links import MembershipLog, connected

PATIENT = msgspec.structs.replace(QUICK, suspect_ms=30_000)


def with_address(config: NetworkConfig, name: str, address: str) -> NetworkConfig:
    brokers = [
        msgspec.structs.replace(entry, address=address) if entry.name == name else entry for entry in config.brokers
    ]
    return msgspec.structs.replace(config, brokers=tuple(brokers))


async def until_said(log: Logged, broker: str, words: str) -> None:
    async with asyncio.timeout(20):
        while not log.of(broker, words):
            await asyncio.sleep(0.02)


async def stop(*starting: "asyncio.Task[Any]") -> None:
    for task in starting:
        task.cancel()
    await asyncio.gather(*starting, return_exceptions=True)


# ---- stopping -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (StorageError("/data: the disk is full"), 64, "the data directory is unusable: /data: the disk is full"),
        (ValueError("x"), 70, "failed: this is a bug in Gapless"),
    ],
)
def test_the_exit_code_distinguishes_a_failing_disk_from_a_bug(
    error: Exception, code: int, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(broker: Broker) -> None:
        broker.failure.set_result(error)

    monkeypatch.setattr(Broker, "start", fail)
    monkeypatch.setattr("gapless.runtime.process._tune_cycle_collector", lambda: None)
    assert run_broker(local_network(1, f=0), "b0") == code
    assert line in caplog.text


# ---- starting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("no-such-host.invalid:7400", "unknown host 'no-such-host.invalid'"),
        ("127.0.0.1:1", "nothing listens on 127.0.0.1:1; is the broker running?"),
    ],
)
def test_a_broker_that_waits_for_its_peers_names_them_and_the_reason(address: str, reason: str) -> None:
    async def main() -> None:
        with logged() as log:
            broker = Broker(with_address(local_network(chain(2), runtime=QUICK), "b1", address), "b0")
            starting = asyncio.create_task(broker.start())
            await until_said(log, "b0", f"waiting for b1 to start: {reason}")
            async with asyncio.timeout(10):
                while not broker.report()["waits"]:
                    await asyncio.sleep(0.02)
            [wait] = broker.report()["waits"]
            assert (wait["kind"], wait["names"]) == ("start", ("b1",))
            assert reason in wait["text"]
            assert not broker.report()["up"]
            await stop(starting)
            await broker.crash()

    run(main())


def test_brokers_with_different_files_say_so_and_do_not_fill_each_others_logs() -> None:
    async def main() -> None:
        config = local_network(chain(3), runtime=PATIENT)
        other = msgspec.structs.replace(config, network=msgspec.structs.replace(config.network, f=0))
        with logged() as log:
            network = Local(config)
            first = [asyncio.create_task(network.start(name)) for name in ("b0", "b1")]
            odd = Broker(other, "b2")
            starting = asyncio.create_task(odd.start())
            await until_said(log, "b2", "waiting for b1 to start: 'b1' has another network file")
            seen = network.brokers["b1"].links.counters.refusals
            async with asyncio.timeout(20):
                while network.brokers["b1"].links.counters.refusals < seen + 15:
                    await asyncio.sleep(0.02)
            refused = log.of("b1", "refused: ", logging.WARNING)
            assert 1 <= len(refused) < 8
            assert set(refused) == {"refused: b2 has another network file than b1; give every host the same file"}
            assert len(log.of("b2", "waiting for b1 to start")) < 8
            await stop(starting, *first)
            await odd.crash()
            for broker in network.brokers.values():
                await broker.crash()

    run(main())


def test_brokers_that_start_together_log_no_complaints() -> None:
    async def main() -> None:
        with logged() as log:
            async with local(chain(3), runtime=PATIENT) as network:
                await connected(network, pairs=3)
            assert [record.getMessage() for record in log.records if record.levelno > logging.INFO] == []

    run(main())


# ---- departures ---------------------------------------------------------------------------------------------------


def test_an_orderly_goodbye_is_no_suspicion() -> None:
    async def main() -> None:
        with logged() as log:
            async with local(chain(2), runtime=PATIENT) as network:
                await connected(network, pairs=1)
                b0 = network.brokers["b0"]
                news = MembershipLog(b0)
                async with connect(network.at("b0"), name="ann"):
                    pass
                await network.brokers.pop("b1").stop()
                await news.wait_for(Suspected("b1"))
                report = b0.report()
                assert (report["suspicions"], report["goodbyes"]) == (0, 2)
                assert (report["links"]["b1"]["suspected"], report["links"]["b1"]["left"]) == (False, True)
                assert log.of("b0", "suspected to have failed") == []
                assert len(log.of("b0", " left")) == 2
                await network.start("b1")
                await until_said(log, "b0", "is reachable again")
                assert not b0.report()["links"]["b1"]["left"]

    run(main())


def test_unreachable_peers_are_named_with_the_reason() -> None:
    async def main() -> None:
        with logged() as log:
            async with local(chain(2), runtime=PATIENT) as network:
                await connected(network, pairs=1)
                await network.crash("b1")
                await until_said(log, "b0", "cannot be reached: nothing listens on 127.0.0.1:")
                await asyncio.sleep(0.5)
                assert len(log.of("b0", "cannot be reached")) < 4

    run(main())


# ---- over HTTP ----------------------------------------------------------------------------------------------------


def fetch(url: str, method: str = "GET") -> tuple[int, bytes, int]:
    request = urllib.request.Request(url, method=method)
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), int(error.headers["Content-Length"])
    with answer:
        return answer.status, answer.read(), int(answer.headers["Content-Length"])


async def with_http(network: Local, name: str) -> tuple[HttpEndpoint, str]:
    broker = network.brokers[name]
    broker.entry = msgspec.structs.replace(broker.entry, http=f"127.0.0.1:{free_ports(1)[0]}")
    endpoint = HttpEndpoint(broker)
    await endpoint.start()
    return endpoint, f"http://{broker.entry.http}"


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/status", "/nothing"])
def test_head_is_answered_as_get_is_without_the_body(path: str) -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            endpoint, url = await with_http(network, "b0")
            status, body, length = await asyncio.to_thread(fetch, url + path)
            assert len(body) == length > 0
            head, nothing, announced = await asyncio.to_thread(fetch, url + path, "HEAD")
            assert (head, nothing) == (status, b"")
            assert announced > 0
            assert (await asyncio.to_thread(fetch, url + path, "PUT"))[0] == 405
            endpoint.stop()

    run(main())


def test_the_metrics_that_are_asked_for_first() -> None:
    async def main() -> None:
        async with local(chain(2)) as network, connect(network.at("b0"), name="ann") as ann:
            endpoint, url = await with_http(network, "b0")
            await ann.advertise("TRUE")
            async with connect(network.at("b0"), name="bob") as bob:
                subscription = await bob.subscribe("TRUE")
                await ann.publish_many({"n": n} for n in range(100))
                taken = 0
                while taken < 60:
                    taken += len(await subscription.take(30))
                text = (await asyncio.to_thread(fetch, f"{url}/metrics"))[1].decode()
                lag = re.search(r'^gapless_client_lag{client="bob-\w+"} (\d+)', text, re.MULTILINE)
                assert lag is not None
                assert 100 - taken <= int(lag[1]) <= 110, (
                    "deliveries are acknowledged in batches, and each KiB counts as one"
                )
            endpoint.stop()
        for line in (
            r"gapless_events_published_total 100\.0",
            r"gapless_events_delivered_total 100\.0",
            r'gapless_confirmation_seconds_bucket{le="\+Inf"} [1-9]',
            r"gapless_confirmation_seconds_sum \d",
            r'gapless_delivery_seconds_bucket{le="0.1"} \d',
            r"gapless_clients 2\.0",
            r"gapless_up 1\.0",
            r'gapless_wait_seconds{kind="handover"} 0\.0',
            r"process_resident_memory_bytes \d",
            r"process_cpu_seconds_total \d",
            r"python_gc_collections_total",
            r'gapless_build_info{.*broker="b0".*protocol="gapless".*version="\w',
        ):
            assert re.search(f"^{line}", text, re.MULTILINE), line

    run(main())


def test_the_report_contains_the_status() -> None:
    async def main() -> None:
        async with local(1, f=0) as network:
            endpoint, url = await with_http(network, "b0")
            report = json.loads((await asyncio.to_thread(fetch, f"{url}/status"))[1])
            assert (report["up"], report["waits"]) == (True, [])
            endpoint.stop()

    run(main())
