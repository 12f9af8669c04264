"""All brokers with disks are killed at once, and return with every confirmed event."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import pytest
from trials.chaos import Chaos, Load

from gapless.checkers import check
from gapless.client import Client, connect
from gapless.errors import ConfigError, StorageError
from gapless.overlay import chain
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import NetworkConfig, StorageEntry, load_network, parse_network
from gapless.runtime.settings import RuntimeSettings
from gapless.trace import merge_parts

SETTINGS = RuntimeSettings(heartbeat_ms=100, suspect_ms=800, join_ms=2_000)
EVENTS = 60
PATIENCE_S = 90.0
NOBODY = 65_534


def network(tmp_path: Path, name: str = "local") -> NetworkConfig:
    return local_network(chain(3), f=1, runtime=SETTINGS, data=tmp_path / "data", name=name)


async def _publish(url: str, confirmed: list[int]) -> None:
    async with connect(url, name="ann") as publisher:
        await publisher.advertise("topic = 'price'")
        for number in range(EVENTS):
            await publisher.publish({"topic": "price", "number": number})
            confirmed.append(number)


async def _story(fleet: Fleet, hurt: Callable[[], None]) -> tuple[list[int], list[int], list[int]]:
    """Publish half of the events before the outage, and half while the brokers return and after that. Return the
    confirmed events, the events delivered to a client that was attached all the time, and the events in history at the
    end."""
    confirmed: list[int] = []
    got: list[int] = []
    async with asyncio.timeout(PATIENCE_S), connect(fleet.config.url, name="bob") as subscriber:
        subscription = await subscriber.subscribe("topic = 'price'")
        publishing = asyncio.create_task(_publish(fleet.config.url, confirmed))
        while len(confirmed) < EVENTS // 2:
            await asyncio.sleep(0.01)
        for name in fleet.names:
            fleet.kill(name)
        hurt()
        for name in reversed(fleet.names):
            fleet.start(name)
            await asyncio.sleep(0.3)
        await publishing
        async for event in subscription:
            got.append(int(str(event.attributes["number"])))
            if len(got) == EVENTS:
                break
        read = [int(str(event.attributes["number"])) async for event in await subscriber.read("topic = 'price'")]
    return confirmed, got, read


def _blackout(tmp_path: Path, hurt: Callable[[], None]) -> None:
    with Fleet(network(tmp_path), tmp_path / "logs") as fleet:
        fleet.start_all()
        run(fleet.until_whole(PATIENCE_S))
        confirmed, got, read = run(_story(fleet, hurt))
    assert confirmed == list(range(EVENTS))
    assert got == confirmed
    assert read == confirmed


@pytest.mark.slow
def test_after_a_crash_of_all_brokers_nothing_confirmed_is_missing_or_duplicated(tmp_path: Path) -> None:
    _blackout(tmp_path, lambda: None)


def test_one_of_them_may_come_back_with_an_empty_disk(tmp_path: Path) -> None:
    _blackout(tmp_path, lambda: shutil.rmtree(tmp_path / "data" / "b2"))


def test_no_event_is_missed_while_brokers_die_and_all_of_them_do(tmp_path: Path) -> None:
    config = local_network(chain(4), f=1, runtime=SETTINGS, data=tmp_path / "data")
    with Fleet(config, tmp_path / "logs") as fleet:
        fleet.start_all()
        chaos = Chaos(fleet, tmp_path / "parts", seed=3, load=Load(askers=2, rate=20, visitors=1))
        outcome = run(chaos.run(0, faults=3, kinds=("blackout", "kill"), pause_s=0.8))
    verdict = check(merge_parts(tmp_path / "parts", quiesced=True))
    assert outcome.failures == []
    assert verdict.status == "valid", f"{verdict.reason} after {outcome.faults}"
    assert verdict.deliveries > 100
    assert {fault.split(",")[0].split()[0] for fault in outcome.faults} == {"blackout", "kill"}


@asynccontextmanager
async def _running(config: NetworkConfig) -> AsyncIterator[tuple[dict[str, Broker], Client]]:
    brokers = {name: Broker(config, name) for name in config.overlay.brokers}
    await asyncio.gather(*(broker.start() for broker in brokers.values()))
    try:
        async with asyncio.timeout(PATIENCE_S), connect(config.url, name="ann") as client:
            yield brokers, client
    finally:
        for broker in brokers.values():
            await broker.crash()


def test_a_broker_whose_disk_fails_reports_it_and_leaves_and_the_others_continue(tmp_path: Path) -> None:
    config = network(tmp_path)

    async def main() -> None:
        async with _running(config) as (brokers, client):
            await client.advertise("TRUE")
            await client.publish({"n": 1})
            broken = brokers["b0"]
            assert broken._disk is not None
            broken._disk._on_failed(StorageError("data/b0: the disk is full; make room on it"))
            failure = await broken.failure
            assert "the disk is full" in str(failure)
            await broken.links.close(reason=str(failure))
            await client.publish({"n": 2})
            link = brokers["b1"].report()["links"]["b0"]
            assert (link["left"], link["left_because"]) == (True, "data/b0: the disk is full; make room on it")

    run(main())


def test_damaged_history_is_in_the_report_of_its_broker(tmp_path: Path) -> None:
    config = network(tmp_path)

    async def main() -> None:
        async with _running(config) as (brokers, client):
            await client.advertise("TRUE")
            await client.publish({"n": 1})
            await brokers.pop("b0").crash()
            _damage_history(tmp_path / "data" / "b0" / "data.sqlite")
            brokers["b0"] = Broker(config, "b0")
            await brokers["b0"].start()
            [sentence] = brokers["b0"].report()["data"]["damaged"]
            assert "is damaged" in sentence
            assert brokers["b1"].report()["data"]["damaged"] == []

    run(main())


def _damage_history(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE history SET blob = zeroblob(length(blob))")
    connection.close()


def test_a_broker_that_has_to_start_over_finds_its_data_and_continues(tmp_path: Path) -> None:
    config = network(tmp_path)

    async def main() -> None:
        async with _running(config) as (brokers, client):
            await client.advertise("TRUE")
            subscription = await client.subscribe("TRUE")
            await client.publish({"n": 1})
            before = brokers["b0"].incarnation
            await brokers["b0"]._start_over("b1")
            assert brokers["b0"].incarnation > before
            await client.publish({"n": 2})
            got = [(await anext(subscription)).attributes["n"] for _ in range(2)]
            assert got == [1, 2]
            while not brokers["b0"].report()["overview"]["joined"]:
                await asyncio.sleep(0.05)

    run(main())


def _start_error(config: NetworkConfig, name: str = "b0") -> str:
    async def main() -> str:
        broker = Broker(config, name)
        with pytest.raises(StorageError) as error:
            await broker.start()
        await broker.crash()
        return str(error.value)

    return run(main())


def _start_once(config: NetworkConfig) -> None:
    async def main() -> None:
        broker = Broker(config, "b0")
        assert broker._disk is not None
        await broker._open_disk()
        await broker.crash()

    run(main())


def test_the_directory_of_another_network_is_refused(tmp_path: Path) -> None:
    _start_once(network(tmp_path))
    assert "contains the data of another network" in _start_error(network(tmp_path, "shop"))


def test_the_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    _start_once(network(tmp_path))
    (tmp_path / "data" / "b0").rename(tmp_path / "data" / "b1")
    assert "contains the data of broker b0, not of b1" in _start_error(network(tmp_path), "b1")


def test_a_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    config = network(tmp_path)

    async def main() -> None:
        first, second = Broker(config, "b0"), Broker(config, "b0")
        await first._open_disk()
        with pytest.raises(StorageError, match="in use"):
            await second.start()
        await first.crash()
        await second.crash()

    run(main())


@contextmanager
def _as_nobody() -> Iterator[None]:
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    with _as_nobody():
        message = _start_error(network(tmp_path))
    assert str(tmp_path / "data") in message
    assert "Permission denied; name another directory" in message


BASE = """
[network]
f = 0
edges = [["b0", "b1"]]

[[brokers]]
name = "b0"
address = "h:1"
data = "here/b0"

[[brokers]]
name = "b1"
address = "h:2"
"""


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("", r"brokers\[1\].data: give a directory to every broker, or to none"),
        ('data = "here/b0"', r"brokers\[1\].data: here/b0 is already used by 'b0'"),
        (r'data = "b\u00001"', r"brokers\[1\].data: .* is not a directory"),
        ('data = "b1"\n[storage]\nsync = "often"', "storage.sync"),
        ('data = "b1"\n[storage]\ninterval_ms = 0.0', "storage.interval_ms: 0 is invalid"),
        ('data = "b1"\n[protocol]\nname = "gryphon"', "does not use disks"),
    ],
)
def test_data_that_makes_no_sense_is_refused(more: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_network(BASE + more)


def test_directories_count_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    file.write_text(BASE + 'data = "/var/b1"\n[storage]\nsync = "interval"\ninterval_ms = 20.0\n', encoding="utf-8")
    config = load_network(file)
    assert [entry.data for entry in config.brokers] == [str(tmp_path / "here" / "b0"), "/var/b1"]
    assert config.storage == StorageEntry("interval", 20.0)
    assert parse_network(config.to_toml()) == config
    assert config.fingerprint == msgspec.structs.replace(config, storage=StorageEntry()).fingerprint
