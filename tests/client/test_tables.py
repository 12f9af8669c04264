"""Events as tables (Arrow, pandas, notebooks), and the lag of a subscription."""

import asyncio

import pytest

import gapless
from gapless import sync
from gapless.client.tables import table_of
from gapless.errors import CallError
from gapless.runtime.event_loop import run
from tests.runtime.local import local


def test_a_read_is_a_table() -> None:
    def work(url: str) -> None:
        with sync.connect(url) as client:
            client.advertise("n > 0")
            client.publish_many([({"n": 1, "seq": "a"}, b"x"), {"n": 2.5, "seq": True}, {"n": 3, "ok": False}])
            table = client.read("n > 0").to_arrow()
            assert table.column_names == ["publisher", "seq", "published_at", "n", "attributes.seq", "ok", "payload"]
            assert table["n"].to_pylist() == [1.0, 2.5, 3.0]
            assert table["attributes.seq"].to_pylist() == ["a", "true", None]
            assert table["ok"].to_pylist() == [None, None, False]
            assert table["payload"].to_pylist() == [b"x", b"", b""]
            frame = client.read("n > 2").to_pandas()
            assert frame["seq"].tolist() == [2, 3]
            assert client.read("n > 7").to_arrow().num_rows == 0
            with client.subscribe("n > 0") as live, pytest.raises(CallError, match="a subscription has no end"):
                live.to_arrow()

    async def main() -> None:
        async with local(1, f=0, protocol="gapless") as network:
            await asyncio.to_thread(work, network.url)

    run(main())


def test_one_table_column_has_one_type() -> None:
    table = table_of([gapless.Event("p", 1, {"a": 1}), gapless.Event("p", 2, {"a": "x"})])
    assert table["a"].to_pylist() == ["1", "x"]
    assert table["published_at"].to_pylist() == [None, None]


def test_a_notebook_shows_an_event_as_a_table() -> None:
    event = gapless.Event("ann", 7, {"topic": "<b>", "n": 3}, b"y" * 100, 1_793_280_000_000_000)
    shown = event._repr_html_()
    assert shown.startswith("<table><tr><th style='text-align:left'>event</th>")
    for text in ("ann:7", "2026-10-29", "&lt;b&gt;", "payload, 100 bytes", "…"):
        assert text in shown
    assert "payload" not in gapless.PublishedEvent("ann", 7, {})._repr_html_()


def test_a_subscription_reports_its_lag() -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(1, f=0, protocol="gapless") as network,
            gapless.connect(network.url) as client,
        ):
            await client.advertise("n > 0")
            await client.publish_many([{"n": 1}, {"n": 2}])
            replay = await client.subscribe("n > 0", since="earliest")
            await asyncio.sleep(0.05)
            assert replay.lag_s >= 0.04
            await replay.take(1)
            await replay.take(1)
            await replay.caught_up()
            assert (replay.events_behind, replay.lag_s) == (0, 0.0)
            await client.publish({"n": 3})
            while not replay.backlog:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.02)
            assert replay.events_behind == 1
            assert 0.01 < replay.lag_s < 30

    run(main())
