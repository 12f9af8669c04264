"""`gapless archive`: each event is in its files once, even after interruptions."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless import sync
from gapless.archive import Archive, read_files
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from tests.conftest import Cli

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    config = local_network(chain(1), f=0, name="shop", protocol=ProtocolEntry("gapless", {"history_bytes": 200_000}))
    with Fleet(config, tmp_path_factory.mktemp("shop")) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(PATIENCE_S))
        yield fleet


def said(fleet: Fleet, first: int, last: int, payload: bytes = b"x") -> None:
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        client.advertise("TRUE")
        for start in range(first, last, 50):
            numbers = range(start, min(start + 50, last))
            client.publish_many([({"topic": "t", "n": n, "half": n / 2}, payload) for n in numbers])
        client.position()


ALL, NONE = Position.at(0), Position.at(2**53)


def kept(directory: Path, text: str = "TRUE", since: Position = ALL, until: Position = NONE) -> list[Event]:
    return [event for some in read_files(Archive(directory), text, since, until) for event in some]


def test_repeated_archiving_stores_events_once_and_longer_than_brokers_do(
    cli: Cli, fleet: Fleet, tmp_path: Path
) -> None:
    arguments = ("archive", "--url", fleet.config.url, "--filter", "topic = 't'", "--to", tmp_path / "a", "--once")
    said(fleet, 0, 300)
    ran = cli(*arguments, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["events"] == 300
    left = tmp_path / "a" / "date=2026-01-01" / "1.parquet.new"
    left.parent.mkdir()
    left.write_bytes(b"what a failure left")
    for start in range(300, 900, 200):
        said(fleet, start, start + 200, b"y" * 700)  # brokers retain about two of these batches
        assert cli(*arguments).code == 0
    assert not left.exists()
    events = kept(tmp_path / "a")
    assert [event.attributes["n"] for event in events] == list(range(900))
    assert events[7].attributes == {"topic": "t", "n": 7, "half": 3.5}
    assert events[7].payload == b"x"
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        there = list(client.read("topic = 't'"))
    assert 0 < len(there) < 900
    assert [event.id for event in there] == [event.id for event in events][-len(there) :]
    middle = events[450].position
    assert kept(tmp_path / "a", "n < 460", since=middle) == [
        event for event in events if event.position > middle and int(event.attributes["n"]) < 460
    ]
    assert (
        cli(*arguments[:4], "TRUE", *arguments[5:]).err.count("is an archive of events that match \"topic = 't'\"") == 1
    )
    with Archive(tmp_path / "a").locked():
        assert "another process writes to the archive" in cli(*arguments).err


def test_losses_at_brokers_end_the_query_or_are_recorded(cli: Cli, fleet: Fleet, tmp_path: Path) -> None:
    arguments = ("archive", "--url", fleet.config.url, "--to", tmp_path / "a", "--once")
    said(fleet, 0, 10)
    assert cli(*arguments).code == 0
    for _ in range(4):
        said(fleet, 0, 300, b"z" * 700)
    ran = cli(*arguments)
    assert ran.code != 0
    assert "brokers dropped them before they were archived" in ran.err
    assert cli(*arguments, "--allow-gaps").code == 0
    contents = Archive(tmp_path / "a").contents()
    assert contents.gaps
    assert all(contents.since <= first <= last <= contents.until for first, last in contents.gaps)
