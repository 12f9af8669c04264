"""The checker rejects traces that no run can have left, each with a clear error."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gapless.checkers import check
from gapless.errors import TraceError
from gapless.events import Event
from gapless.trace import CutRow, HistoryRow, PastRow, Recorder, Trace


def good() -> Trace:
    recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    recorder.subscribe("bob", "s1", "x = 1", 0)
    recorder.fix_cut("s1", "ann", 1)
    recorder.activate("s1", 1)
    for seq in (1, 2):
        event = Event("ann", seq, {"x": 1})
        recorder.publish("ann", event, 2 * seq)
        recorder.deliver("bob", event, "s1", 2 * seq + 1)
    return recorder.finish(quiesced=True)


def changed(row: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(row, **fields)


def publishing(client: str, step: int, event_id: str) -> HistoryRow:
    return HistoryRow("r", client, step, "publish", event_id, None, 9.0)


DAMAGES: list[tuple[str, Callable[[Trace], object]]] = [
    ("no single step 1", lambda t: t.history.__setitem__(2, changed(t.history[2], step=2))),
    ("no single step 1", lambda t: t.history.append(changed(t.history[0], step=0))),
    ("must name a subscription", lambda t: t.history.append(HistoryRow("r", "bob", 2, "deliver", "ann:1", None, 9.0))),
    ("must name a subscription", lambda t: t.history.append(changed(t.history[0], step=2, subscription_id="s1"))),
    ("not named publisher:seq", lambda t: t.events.append(changed(t.events[0], event_id="odd"))),
    ("not named publisher:seq", lambda t: t.events.append(changed(t.events[0], event_id="ann:0", seq=0))),
    ("ann:1 is listed twice", lambda t: t.events.append(t.events[0])),
    ("not an event of its own", lambda t: t.history.append(publishing("bob", 2, "ann:1"))),
    ("not an event of its own", lambda t: t.history.append(publishing("ann", 2, "ann:3"))),
    ("out of order", lambda t: t.history.append(publishing("ann", 2, "ann:1"))),
    ("3 events are listed, but 2", lambda t: t.events.append(changed(t.events[0], event_id="ann:3", seq=3))),
    ("s1 is listed twice", lambda t: t.subscriptions.append(t.subscriptions[0])),
    ("s9, which is not listed", lambda t: t.cuts.append(CutRow("r", "s9", "ann", 1, None))),
    ("two cuts for publisher ann", lambda t: t.cuts.append(CutRow("r", "s1", "ann", 2, None))),
    ("has an ending cut, but did not end", lambda t: t.cuts.append(CutRow("r", "s1", "eve", 2, 3))),
    ("two entries for publisher x", lambda t: t.pasts.extend([PastRow("r", "ann:1", "x", 1)] * 2)),
    ("filter 'x =' ", lambda t: t.subscriptions.__setitem__(0, changed(t.subscriptions[0], filter="x ="))),
    ("are not a JSON object", lambda t: t.events.__setitem__(0, changed(t.events[0], attributes="[1]"))),
    ("0 runs", lambda t: t.runs.clear()),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "damage"), DAMAGES, ids=[sentence for sentence, _ in DAMAGES])
def test_an_impossible_trace_is_refused(sentence: str, damage: Callable[[Trace], object]) -> None:
    trace = good()
    assert check(trace).status == "valid"
    damage(trace)
    with pytest.raises(TraceError, match=sentence) as caught:
        check(trace)
    assert "\n" not in str(caught.value)


def test_histories_that_contradict_each_other_are_refused() -> None:
    recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    for client in ("ann", "bob"):
        recorder.subscribe(client, f"s-{client}", "x = 1", 0)
    ann, bob = Event("ann", 1, {"x": 1}), Event("bob", 1, {"x": 1})
    recorder.deliver("ann", bob, "s-ann", 1)
    recorder.deliver("bob", ann, "s-bob", 1)
    recorder.publish("ann", ann, 2)
    recorder.publish("bob", bob, 2)
    with pytest.raises(TraceError, match="contradict each other"):
        check(recorder.finish(quiesced=True))


def test_a_client_cannot_be_delivered_its_own_event_before_it_published_it() -> None:
    recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    recorder.subscribe("ann", "s", "x = 1", 0)
    event = Event("ann", 1, {"x": 1})
    recorder.deliver("ann", event, "s", 1)
    recorder.publish("ann", event, 2)
    with pytest.raises(TraceError, match="contradict each other"):
        check(recorder.finish(quiesced=True))
