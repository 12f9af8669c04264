"""A broker reads a bounded part of its history in each turn, however many messages it receives in that turn."""

import pytest

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocols.gapless import history, reading
from gapless.protocols.gapless.client_messages import ClientAdvertise, ClientGot, ClientPublish, ClientSubscribe
from gapless.protocols.gapless.history import look_up

from .bench import Bench

EVENTS = 300
PAGE = 10


def test_steps_of_one_turn_share_what_may_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[object] = []

    def counted(*question: object) -> object:
        pages.append(question)
        return look_up(*question)  # type: ignore[arg-type]

    bench = Bench(1)
    bench.attach("p", "b0")
    bench.say("p", "b0", ClientAdvertise(1, "p/a1", "TRUE"))
    for number in range(1, EVENTS + 1):
        bench.say("p", "b0", ClientPublish(1, EventRun.of([Event("p", number, {"n": number})])))
    bench.pass_time(1.0)
    bench.attach("c", "b0")
    bench.attach("d", "b0")
    monkeypatch.setattr(reading, "look_up", counted)
    monkeypatch.setattr(history, "PAGE_EVENTS", PAGE)
    bench.say("c", "b0", ClientSubscribe(1, "c/s1", f"n = {EVENTS}", since=0, until=bench.now))
    for _ in range(20):
        bench.say("d", "b0", ClientGot(1, 0))
    assert len(pages) <= reading.WORK_MAX // reading.PAGE_WORK, "the messages of one turn do not read more"
    bench.pass_time(1.0)
    assert len(pages) >= EVENTS // PAGE
    assert bench.got("c", "c/s1") == [f"p:{EVENTS}"]
