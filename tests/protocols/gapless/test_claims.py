"""Malicious clients: the broker disconnects each with an error, or the client harms only itself. The traffic of others
continues, and no broker's clock moves.
"""

from typing import Any

import msgspec
import pytest

from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.filters.lexer import TEXT_LENGTH_MAX
from gapless.positions import TIMESTAMP_MAX
from gapless.protocol import Owners
from gapless.protocols.gapless.claims import EFFORT_MAX
from gapless.protocols.gapless.client_messages import (
    Active,
    Attach,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Detach,
    Ready,
    Retry,
    Stable,
)
from gapless.protocols.gapless.durable.client_messages import (
    ClientAck,
    ClientAttach,
    ClientGroupReport,
    ClientList,
    ClientMove,
)
from gapless.protocols.gapless.durable.messages import Item, Progress, Report, Returned
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.link_messages import FinalPosition
from gapless.protocols.gapless.numbers import NUMBER_MAX
from gapless.protocols.parts.bounds import READINGS_MAX, TEXT_MAX

from .bench import Bench


def event(seq: int, publisher: str = "liar", **attributes: Any) -> Event:
    return Event(publisher, seq, dict(attributes))


def publish(*events: Event) -> ClientPublish:
    return ClientPublish(1, EventRun.of(events))


def attach(**changes: Any) -> Attach:
    return msgspec.structs.replace(Attach(2, None, 0, 0, 0, 0, 0), **changes)


def ack(**changes: Any) -> ClientAck:
    subscription = changes.pop("subscription", "liar/s1")
    return ClientAck(1, subscription, "n", 1, 1, msgspec.structs.replace(Progress(0), **changes))


def report(**changes: Any) -> ClientGroupReport:
    return ClientGroupReport(1, "liar/s1", "n", msgspec.structs.replace(Report("line", 1), **changes))


LIES: dict[str, tuple[Any, str]] = {
    "no session": (ClientGot(0, 1), "sessions are numbered from 1"),
    "a session beyond all": (attach(session=2**62), "numbers are from 0 to"),
    "a session before the one it goes on with": (attach(resumes=3), "earlier than the session that it resumes"),
    "more confirmed than published": (attach(published=3, confirmed=4), "of which 4 are confirmed"),
    "fewer than none": (attach(received=-1), "number -1"),
    "a timestamp beyond all": (attach(largest=2**63 - 1), "numbers are from 0 to"),
    "a broker that is none": (attach(incarnation=Incarnation("b9", 0)), "comes from 'b9', incarnation 0"),
    "an incarnation to come": (attach(incarnation=Incarnation("b0", 10**9)), "which never was in this network"),
    "an incarnation before all": (attach(incarnation=Incarnation("b1", -1)), "number -1"),
    "another's subscription": (ClientSubscribe(1, "reader/s1", "TRUE"), "which belongs to 'reader'"),
    "another's advertisement": (ClientAdvertise(1, "honest/a1", "TRUE"), "which belongs to 'honest'"),
    "a name without end": (ClientSubscribe(1, "liar/" + "s" * 500, "TRUE"), "this one has 505"),
    "a name that steers terminals": (ClientSubscribe(1, "liar/\x1b[2J", "TRUE"), "printable characters"),
    "no name": (ClientUnsubscribe(1, ""), "0 characters"),
    "a filter that cannot be read": (ClientSubscribe(1, "liar/s1", "a <"), "found the end"),
    "an advertisement that cannot be read": (ClientAdvertise(1, "liar/a1", "a = NULL"), "IS NOT NULL"),
    "a position beyond all": (ClientSubscribe(1, "liar/s1", "TRUE", TIMESTAMP_MAX + 1), "positions go to"),
    "a position before all": (ClientSubscribe(1, "liar/s1", "TRUE", -2), "positions go to"),
    "an end before all": (ClientSubscribe(1, "liar/s1", "TRUE", 0, -1), "positions go to"),
    "resumed at no position": (ClientSubscribe(1, "liar/s1", "TRUE", is_resumed=True), "without a position"),
    "another's event": (publish(event(1, "honest")), "in the name of 'honest'"),
    "another's run": (publish(event(1, "honest"), event(2, "honest")), "in the name of 'honest'"),
    "a number that jumps": (publish(event(1), event(7)), "2 events whose numbers are not consecutive"),
    "a first number that jumps": (publish(event(2)), "number 2, but number 1 is next"),
    "a run that jumps": (publish(event(2), event(3)), "number 2, but number 1 is next"),
    "a number below nothing": (publish(event(-5)), "number -5"),
    "number 0": (publish(event(0)), "numbers begin with 1"),
    "a run below nothing": (publish(event(-1), event(0)), "number -1"),
    "a run beyond all": (publish(event(2**53), event(2**53 + 1)), "numbers are from 0"),
    "an attribute without a name": (publish(Event("liar", 1, {"": 1})), "an attribute without a name"),
    "a run with one": (
        publish(event(1), Event("liar", 2, {"": 1})), "an attribute without a name",
    ),
    "a run without end": (
        ClientPublish(1, EventRun("liar", 1, EventTable.of([{}] * 20_000, [b""] * 20_000))),
        "more than 16,000 waiting publications",
    ),
    "an acknowledgement of what it never got": (ClientGot(1, 5), "acknowledges delivery 5, but was sent only 0"),
    "an acknowledgement beyond all": (ClientGot(1, 2**63 - 1), "numbers are from 0"),
    "another's durable subscription": (
        ClientAttach(1, "reader/s1", "n", "TRUE", line="l"), "which belongs to 'reader'",
    ),
    "a durable subscription without a name": (ClientAttach(1, "liar/s1", "", "TRUE", line="l"), "0 characters"),
    "an attachment without end": (ClientAttach(1, "liar/s1", "n", "TRUE", line="l" * 2_000), "this one has 2,000"),
    "a durable filter that cannot be read": (ClientAttach(1, "liar/s1", "n", "a <", line="l"), "found the end"),
    "a time without end": (
        ClientAttach(1, "liar/s1", "n", "TRUE", is_shared=True, redeliver_us=NUMBER_MAX, line="l"),
        "86,400,000,000 is the limit",
    ),
    "acknowledged beyond all": (ack(got={"p": 2**63 - 1}), "numbers are from 0"),
    "a position acknowledged beyond all": (ack(position=2**60), "numbers are from 0"),
    "acknowledged publishers without end": (ack(got={f"p{n}": 1 for n in range(60_001)}), "60,001 publishers"),
    "publishers with names without end": (ack(got={"p" * (1 << 18): 1, "q": 1}), "262,145 characters"),
    "a range beyond all": (ack(done={"p": [(1, 2**63 - 1)]}), "numbers are from 0"),
    "a move beyond all": (ClientMove(1, "liar/1", "n", "TRUE", 2**60), "positions go from 0"),
    "a move after nobody's event": (ClientMove(1, "liar/1", "n", "TRUE", 5, (6, "", 1)), "that cannot exist"),
    "a move after another place": (ClientMove(1, "liar/1", "n", "TRUE", 5, (9, "p", 1)), "that cannot exist"),
    "a request without end": (ClientList(1, 2**60), "numbers are from 0"),
    "a report without end": (report(holds=[Item("p", 1)] * 10_001), "reports 10,001 deliveries"),
    "too many returned events": (report(returned=[Returned(1, 0)] * 10_001), "reports 10,001 deliveries"),
    "a nack with an endless delay": (report(returned=[Returned(1, 2**50)]), "86,400,000,000 is the limit"),
    "a report of nobody": (report(line=""), "0 characters"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
def test_a_false_claim_is_refused_with_a_message_and_affects_no_other_client(kind: str) -> None:
    lie, complaint = LIES[kind]
    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    bench.say("liar", "b0", lie)
    assert complaint in bench.expelled["liar"]
    bench.check_honest()


def test_a_false_claim_during_a_handover_is_refused_after_it() -> None:
    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    state = bench.nodes["b0"].state
    state.is_installed = False  # as before the first handover
    bench.say("liar", "b0", publish(event(2)), ClientGot(1, 7))
    assert "liar" not in bench.expelled
    state.is_installed = True
    bench.pass_time(0.5)
    assert "liar" in bench.expelled
    bench.check_honest()


@pytest.mark.parametrize("frozen", [False, True])
def test_waiting_messages_are_bounded(frozen: bool) -> None:
    """Messages can wait for an advertisement that never becomes stable, or for a handover."""
    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    state = bench.nodes["b0"].state
    state.is_installed = not frozen
    for n in range(0, 17_000, 1_000):
        bench.say("liar", "b0", ClientPublish(1, EventRun("liar", 1 + n, EventTable.of([{}] * 1_000, [b""] * 1_000))))
        if frozen:
            bench.say("liar", "b0", *(ClientGot(1, 0) for _ in range(5_000)))
    assert "waiting publications" in bench.expelled["liar"] or "cannot process them" in bench.expelled["liar"]
    assert len(state.inbox) < 100_000
    state.is_installed = True
    bench.check_honest()


def test_of_many_attempts_to_attach_one_is_queued() -> None:
    bench = Bench()
    bench.begin_honest()
    state = bench.nodes["b0"].state
    state.is_installed = False
    for session in range(1, 1_000):
        bench.say("eager", "b0", attach(session=session))
    assert len(state.inbox) == 1
    assert len(bench.received_by("eager", Retry)) == 999
    state.is_installed = True
    bench.pass_time(0.5)
    assert [ready.session for ready in bench.received_by("eager", Ready)] == [999]
    bench.check_honest()


# ---- forged positions, incarnations and timestamps -------------------------------------------------------------


def test_a_timestamp_that_no_broker_gave_moves_no_clock_and_opens_no_session() -> None:
    """The client claims a delivery from the future. Only this client has to wait."""
    bench = Bench()
    bench.begin_honest()
    ahead = bench.now + 365 * 86_400_000_000
    bench.say("liar", "b0", attach(incarnation=Incarnation("b1", 0), largest=ahead))
    bench.pass_time(5.0)
    assert not bench.received_by("liar", Ready)
    assert bench.received_by("liar", Retry)
    bench.check_honest()


def test_timestamps_supplied_by_a_client_move_no_clock() -> None:
    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    ahead = bench.now + 365 * 86_400_000_000
    bench.say("liar", "b0", ClientAdvertise(1, "liar/a1", "TRUE"))
    bench.pass_time(1.0)
    assert bench.received_by("liar", Stable)
    bench.say(
        "liar", "b0",
        publish(Event("liar", 1, {"topic": "honest"}, b"", ahead)),
        ClientPublish(1, EventRun("liar", 2, EventTable.of([{"topic": "honest"}] * 2, [b"", b""]), ahead)),
        ClientSubscribe(1, "liar/s1", "TRUE", ahead),
        ClientSubscribe(1, "liar/s2", "TRUE", 0, ahead),
        ClientSubscribe(1, "liar/s3", "TRUE", ahead, is_resumed=True),
        ClientAttach(1, "liar/s4", "n", "TRUE", line="l"),
    )  # fmt: skip
    bench.pass_time(1.0)
    bench.say(
        "liar", "b0", ack(subscription="liar/s4", position=ahead, latest=ahead, delivered=ahead, got={"honest": 2**50})
    )
    bench.pass_time(1.0)
    bench.say("liar", "b0", ClientMove(1, "liar/m", "n", "TRUE", ahead))
    bench.pass_time(1.0)
    assert "liar" not in bench.expelled
    bench.say("reader", "b1", ClientSubscribe(1, "reader/all", "TRUE", 0))
    bench.check_honest()
    stamps = [each.stamp for delivery in bench.inboxes["reader"] for each in getattr(delivery, "events", [])]
    assert stamps
    assert max(stamps) <= bench.now


@pytest.mark.parametrize("incarnation", [None, ("b0", 0), ("b1", 0), ("b1", 999), ("b1", 10**6)])
@pytest.mark.parametrize("published", [(0, 0), (9, 0), (9, 9), (NUMBER_MAX, NUMBER_MAX)])
def test_forged_pasts_cost_only_the_forger_its_events(
    incarnation: tuple[str, int] | None, published: tuple[int, int]
) -> None:
    bench = Bench()
    bench.begin_honest()
    said, confirmed = published
    home = None if incarnation is None else Incarnation(*incarnation)
    bench.say("liar", "b0", attach(incarnation=home, resumes=1, received=5, published=said, confirmed=confirmed))
    bench.pass_time(2.0)
    bench.say("liar", "b0", ClientAdvertise(2, "liar/a1", "topic = 'honest'"), Detach(2))
    bench.pass_time(2.0)
    bench.check_honest()


def test_a_client_that_missed_its_session_opens_another() -> None:
    """The client's broker is dead, and the answer of the next one was lost, so a session already exists."""
    bench = Bench(3, f=1)
    bench.begin_honest()
    bench.attach("mover", "b2")
    bench.crash("b2")
    bench.pass_time(5.0)
    for session in (2, 3):
        bench.say("mover", "b1", attach(session=session, incarnation=Incarnation("b2", 0)))
        bench.pass_time(2.0)
    assert [ready.session for ready in bench.received_by("mover", Ready)] == [1, 2, 3]


def test_two_sessions_of_one_name_at_two_brokers_affect_no_other_client() -> None:
    bench = Bench(3)
    bench.begin_honest()
    for broker in ("b0", "b2"):
        bench.attach("liar", broker)
        bench.say("liar", broker, ClientAdvertise(1, "liar/a1", "topic = 'honest'"))
        bench.pass_time(0.5)
        bench.say("liar", broker, publish(event(1, topic="honest"), event(2, topic="honest")))
        bench.pass_time(0.5)
    bench.say("liar", "b1", attach(incarnation=Incarnation("b0", 0), published=2))
    bench.pass_time(1.0)
    bench.check_honest()
    assert bench.got("reader", "reader/s1").count("liar:1") == 1


# ---- amounts ---------------------------------------------------------------------------------------------------


def test_filters_of_one_client_are_bounded_together_and_ended_ones_do_not_count() -> None:
    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    texts = [f"a IN ('{'x' * (TEXT_LENGTH_MAX - 100)}', '{number}')" for number in range(17)]
    for number, text in enumerate(texts[:16] * 2):
        bench.say("liar", "b0", ClientSubscribe(1, f"liar/s{number}", text))
        bench.say("liar", "b0", ClientUnsubscribe(1, f"liar/s{number}"))
    assert "liar" not in bench.expelled
    for number, text in enumerate(texts):
        bench.say("liar", "b0", ClientSubscribe(1, f"liar/t{number}", text))
    assert f"{TEXT_MAX:,} is the limit; end some of them" in bench.expelled["liar"]
    bench.check_honest()


def test_the_effort_of_one_client_is_bounded() -> None:
    def hard(number: int) -> str:
        groups = (" AND ".join(f"(a LIKE 'x{number}_{n}%_a%' OR a NOT LIKE '_{n}%b')" for n in range(6)),) * 20
        return " OR ".join(f"({group.replace('%b', f'%b{place}')})" for place, group in enumerate(groups))

    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    for number in range(200):
        bench.say("liar", "b0", ClientSubscribe(1, f"liar/s{number}", hard(number)))
        if "liar" in bench.expelled:
            break
    assert f"more than {EFFORT_MAX:,} steps" in bench.expelled["liar"]
    bench.check_honest()


def test_history_is_read_with_few_subscriptions_at_a_time() -> None:
    bench = Bench()
    bench.begin_honest()
    bench.attach("liar", "b0")
    for number in range(READINGS_MAX + 1):
        assert "liar" not in bench.expelled
        bench.say("liar", "b0", ClientSubscribe(1, f"liar/s{number}", "TRUE", bench.now + 10**12, bench.now + 10**13))
    assert f"more than {READINGS_MAX} subscriptions at a time" in bench.expelled["liar"]
    bench.check_honest()


# ---- tickets ---------------------------------------------------------------------------------------------------


def test_no_ticket_grants_all_of_history_because_a_broker_knows_no_final_position_yet() -> None:
    owners = Owners(has_tickets=True, ticket=lambda client, text, position: b"%d" % position)
    bench = Bench(owners=owners)
    bench.begin_honest()
    bench.attach("early", "b0")
    bench.nodes["b0"].state.final = FinalPosition()
    bench.say("early", "b0", ClientSubscribe(1, "early/s", "topic = 'honest'"))
    bench.pass_time(1.0)
    [active] = bench.received_by("early", Active)
    assert int(active.ticket) == active.position > 0
    bench.check_honest()
    assert bench.got("early", "early/s") == ["honest:1"]
