"""One history over an archive and brokers: no gap, no duplicate, and a known seam."""

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import gapless
from gapless import sync
from gapless.archive import Archive, ArchiveWriter, Contents
from gapless.errors import CallError, SkippedError
from gapless.events import Event
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from tests.conftest import Cli

PATIENCE_S = 120.0
TEXT = "topic = 't'"


class Numbered(msgspec.Struct):
    n: int


class Kept(NamedTuple):
    url: str
    archive: Path
    said: int


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    config = local_network(chain(1), f=0, name="shop", protocol=ProtocolEntry("gapless", {"history_bytes": 200_000}))
    with Fleet(config, tmp_path_factory.mktemp("shop")) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(PATIENCE_S))
        yield fleet


def say(url: str, first: int, last: int) -> None:
    with sync.connect(url, timeout_s=PATIENCE_S) as client:
        client.advertise("TRUE")
        for start in range(first, last, 50):
            numbers = range(start, min(start + 50, last))
            client.publish_many([({"topic": "t", "n": n}, b"y" * 700) for n in numbers])
        client.position()


@pytest.fixture(scope="module")
def kept(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    from gapless.cli.archive import archive_history

    place, url = tmp_path_factory.mktemp("archive") / "a", fleet.config.url
    for start in range(0, 800, 200):
        say(url, start, start + 200)
        archive_history(url, TEXT, place, every_s=1.0, once=True, allow_gaps=False, credentials=None, as_json=True)
    say(url, 800, 900)  # only brokers have these events
    with sync.connect(url, timeout_s=PATIENCE_S) as client:
        assert 100 <= len(list(client.read(TEXT))) < 800
    return Kept(url, place, 900)


def numbers(events: list[Event]) -> list[int]:
    return [int(event.attributes["n"]) for event in events]


def test_events_dropped_by_brokers_are_read_from_the_archive(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    with sync.connect(kept.url, timeout_s=PATIENCE_S) as client, caplog.at_level(logging.INFO, "gapless.client"):
        reading = client.archive(kept.archive).read(TEXT)
        assert reading.archive_end is None
        events = list(reading)
    assert numbers(events) == list(range(kept.said))
    assert reading.archive_end == Archive(kept.archive).contents().until
    assert [event.position for event in events] == sorted(event.position for event in events)
    assert f"were read from {kept.archive} up to position {reading.archive_end}" in caplog.text


def test_a_subscription_continues_from_the_archive_with_live_events(kept: Kept) -> None:
    async def listen() -> tuple[list[Event], Position | None, bool]:
        async with gapless.connect(kept.url, timeout_s=PATIENCE_S) as client, gapless.connect(kept.url) as other:
            subscription = await client.archive(kept.archive).subscribe(TEXT, since="earliest")
            events = [await anext(subscription) for _ in range(10)]
            assert not subscription.is_live
            while len(events) < kept.said:
                events += await subscription.take(timeout_s=PATIENCE_S)
            await other.advertise("TRUE")
            await other.publish({"topic": "t", "n": -1})
            while events[-1].attributes["n"] != -1:
                events += await subscription.take(timeout_s=PATIENCE_S)
            await subscription.close()
            return events, subscription.archive_end, subscription.is_live

    events, seam, is_live = asyncio.run(listen())
    assert numbers(events)[:-1] == list(range(kept.said))
    assert (seam, is_live) == (Archive(kept.archive).contents().until, True)


def test_a_range_within_the_archive_asks_no_broker_and_typed_events_come_too(kept: Kept) -> None:
    with sync.connect(kept.url, timeout_s=PATIENCE_S) as client:
        events = list(client.archive(kept.archive).read(TEXT))
        first, last = events[100].position, events[300].position
        inside = [event for event in events if first < event.position <= last]
        reading = client.archive(kept.archive).read(TEXT, since=first, until=last)
        assert [event.id for event in reading] == [event.id for event in inside]
        assert reading.archive_end == last
        typed = client.archive(kept.archive).read(TEXT, type=Numbered, since=first, until=last)
        assert [value.n for value in typed] == numbers(inside)


def test_cancelling_a_wait_loses_nothing_and_closing_ends_it(kept: Kept) -> None:
    async def listen() -> list[Event]:
        events: list[Event] = []
        async with gapless.connect(kept.url, timeout_s=PATIENCE_S) as client:
            reading = await client.archive(kept.archive).read(TEXT)
            while not reading.has_ended or reading._oldest() is not None:
                try:
                    events += await reading.take(64, timeout_s=0.0005)
                except TimeoutError:
                    continue
            other = await client.archive(kept.archive).read(TEXT)
            await other.take(1)
            await other.close()
            while await other.take():
                pass
            assert other.has_ended
        return events

    assert numbers(asyncio.run(listen()))[: kept.said] == list(range(kept.said))


def test_gaps_of_the_archive_are_reported_in_place(kept: Kept, tmp_path: Path) -> None:
    at = 1_700_000_000_000_000

    def position(after: int) -> Position:
        return Position.at(at + after)

    archive = Archive(tmp_path)
    writer = ArchiveWriter(archive, Contents("shop", "TRUE", position(0), position(0)))
    writer.add([Event("ann", n, {"topic": "t", "n": n}, b"", at + n) for n in (1, 2, 5)])
    writer.note_gap(position(2), position(4))
    writer.commit(position(10))
    with sync.connect(kept.url, timeout_s=PATIENCE_S) as client:
        reading = client.archive(tmp_path).read(TEXT, until=position(10))
        assert numbers([next(reading), next(reading)]) == [1, 2]
        with pytest.raises(SkippedError, match=f"lacks events between positions {position(2)} and {position(4)}"):
            next(reading)
        assert numbers(list(reading)) == [5]


def test_archives_that_do_not_fit_are_refused(kept: Kept, tmp_path: Path) -> None:
    with sync.connect(kept.url, timeout_s=PATIENCE_S) as client:
        with pytest.raises(CallError, match="which is less than 'TRUE' matches"):
            client.archive(kept.archive).read("TRUE")
        with pytest.raises(CallError, match="pass since to say where to begin"):
            client.archive(kept.archive).subscribe(TEXT, since="now")
        with pytest.raises(gapless.GaplessError, match="there is no archive at"):
            client.archive(tmp_path).read(TEXT)
        Archive(tmp_path).replace(Contents("other", "TRUE", Position.at(0), Position.at(0)))
        with pytest.raises(CallError, match="an archive of network 'other'"):
            client.archive(tmp_path).read(TEXT)


def test_the_command_prints_both_and_reports_the_seam(cli: Cli, kept: Kept) -> None:
    ran = cli("sub", TEXT, "--url", kept.url, "--since", "earliest", "--until", "now", "--archive", kept.archive)
    assert ran.code == 0, ran.err
    found = [json.loads(line)["attributes"]["n"] for line in ran.out.splitlines()]
    assert found[: kept.said] == list(range(kept.said))
    seam = Archive(kept.archive).contents().until
    assert f"events up to position {seam} (" in ran.err
    assert "--archive needs --since" in cli("sub", TEXT, "--url", kept.url, "--archive", kept.archive).err
