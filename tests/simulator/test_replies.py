"""Clients that answer create chains of causes and effects."""

from gapless.overlay import chain
from gapless.protocol import Publish, Subscribe
from gapless.simulator import ReplyRule, Simulation
from gapless.trace import Recorder, Trace, attributes_from_text

from .flooding import FLOODING

MS = 1000


def run(*rules: ReplyRule, requests: int = 1) -> Trace:
    recorder = Recorder(run="r", protocol="flooding", guarantee="best-effort", scenario="s", seed=0, brokers=3, f=1)
    simulation = Simulation(chain(3), FLOODING, recorder=recorder)
    simulation.add_client("asker", "b0")
    simulation.add_client("server", "b2")
    simulation.call("server", Subscribe("requests", "topic = 'request'"), at=0)
    simulation.call("asker", Subscribe("replies", "topic = 'reply'"), at=0)
    for rule in rules:
        simulation.reply(rule)
    for number in range(requests):
        simulation.call("asker", Publish({"topic": "request", "number": number}), at=MS + number * MS)
    trace = simulation.run(settle=200 * MS).trace
    assert trace is not None
    return trace


def published(trace: Trace, client: str) -> list[tuple[float, dict[str, object]]]:
    return [
        (event.published_ms, dict(attributes_from_text(event.attributes)))
        for event in trace.events
        if event.publisher == client
    ]


def test_a_reply_comes_at_once_and_copies_attributes() -> None:
    trace = run(
        ReplyRule("server", {"topic": "reply", "number": "$number", "what": "$nothing"}, "requests"), requests=2
    )
    assert published(trace, "server") == [
        (21.0, {"topic": "reply", "number": 0}),
        (22.0, {"topic": "reply", "number": 1}),
    ]
    acts = [(row.kind, row.event_id) for row in trace.history if row.client == "server"]
    assert acts == [("deliver", "asker:1"), ("publish", "server:1"), ("deliver", "asker:2"), ("publish", "server:2")]


def test_a_reply_can_wait() -> None:
    trace = run(ReplyRule("server", {"topic": "reply"}, delay_us=7 * MS))
    assert [at for at, _ in published(trace, "server")] == [28.0]


def test_replies_to_other_subscriptions_do_not_count() -> None:
    assert published(run(ReplyRule("server", {"topic": "reply"}, "something else")), "server") == []


def test_at_most_bounds_a_chain_that_feeds_itself() -> None:
    trace = run(
        ReplyRule("server", {"topic": "reply"}, "requests", at_most=1000),
        ReplyRule("asker", {"topic": "request"}, "replies", at_most=4),
    )
    assert len(published(trace, "server")) == 5
    assert len(published(trace, "asker")) == 5


def test_the_first_few_can_be_left_unanswered() -> None:
    trace = run(ReplyRule("server", {"topic": "reply", "number": "$number"}, at_most=1, after=2), requests=5)
    assert published(trace, "server") == [(23.0, {"topic": "reply", "number": 2})]


def test_probability() -> None:
    trace = run(ReplyRule("server", {"topic": "reply"}, probability=0.5, at_most=1000), requests=100)
    assert 30 < len(published(trace, "server")) < 70


def test_a_run_waits_for_late_replies() -> None:
    trace = run(ReplyRule("server", {"topic": "reply"}, delay_us=180 * MS), ReplyRule("asker", {"topic": "thanks"}))
    assert [attributes["topic"] for _, attributes in published(trace, "asker")] == ["request", "thanks"]
