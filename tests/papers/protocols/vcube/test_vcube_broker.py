"""A broker of the hypercube, message by message: broadcasts, phases, receivers, and every bound."""

from typing import Any

import pytest

from gapless.errors import ProtocolError
from gapless.events import Event
from gapless.protocol import Start, convert_options
from gapless.registry import find_protocol
from gapless_papers.protocols.vcube.messages import (
    Ack,
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Pub,
    Ready,
    Refused,
    Sub,
    Taken,
    Uns,
)
from tests.papers.protocols.vcube.vcube_cube import Cube

# ---- joining and leaving


def test_joining_goes_to_every_broker_once_and_is_ready_when_all_have_answered() -> None:
    cube = Cube(8)
    cube.subscribe(3, settle=False)
    cube.settle(but={(5, 7)})
    assert cube.received_by(3, Ready) == []
    cube.settle()
    assert cube.received_by(3, Ready) == [Ready(1, {})]
    assert cube.sent == {"Sub": 7, "Ack": 7}


def test_a_second_client_finds_its_broker_a_member() -> None:
    cube = Cube(8)
    cube.subscribe(3)
    cube.step("b3", "other", ClientSubscribe(1, "t"))
    assert cube.clients["other"] == [Ready(1, {})]
    assert cube.sent["Sub"] == 7


def test_members_learn_of_each_other() -> None:
    cube = Cube(8)
    cube.subscribe(0, 3, 6)
    assert [cube.size(number, "members") for number in (0, 3, 6)] == [3, 3, 3]
    assert [cube.size(number, "topics") for number in (1, 2)] == [0, 0]


def test_leaving_is_sent_to_the_members_and_waits_for_their_answers() -> None:
    cube = Cube(8)
    cube.subscribe(0, 3, 6)
    cube.sent.clear()
    cube.call(3, ClientEnd(1, "t"))
    cube.settle()
    assert cube.sent == {"Uns": 2, "Ack": 2}
    cube.sent.clear()
    cube.publish(0)
    cube.settle()
    assert cube.sent["Pub"] == 1
    assert cube.got(3) == []
    assert cube.got(6) == ["c0:1"]


def test_a_broker_rejoins_after_it_has_finished_leaving() -> None:
    cube = Cube(4)
    cube.subscribe(0, 3)
    cube.call(3, ClientEnd(1, "t"))
    cube.call(3, ClientSubscribe(2, "t"))
    assert not any(isinstance(message, Sub) for queue in cube.links.values() for message in queue)
    cube.settle()
    assert [ready.number for ready in cube.received_by(3, Ready)] == [1, 2]
    cube.publish(0)
    cube.settle()
    assert cube.got(3) == ["c0:1"]


def test_a_client_subscribes_and_unsubscribes_while_its_broker_joins() -> None:
    cube = Cube(4)
    cube.subscribe(2)
    cube.call(0, ClientSubscribe(1, "t"))
    cube.call(0, ClientEnd(1, "t"))
    cube.settle()
    assert cube.received_by(0, Ready) == []
    cube.publish(2)
    cube.settle()
    assert cube.sent["Pub"] == 0


def test_a_broker_that_left_notifies_new_members() -> None:
    """b1 leaves without knowing b0, which has learned of b1 from another broker's answer."""
    cube = Cube(4)
    cube.subscribe(1, 3)
    cube.subscribe(2, settle=False)
    cube.subscribe(0, settle=False)
    cube.call(1, ClientEnd(1, "t"))
    cube.settle()
    cube.sent.clear()
    cube.publish(0)
    cube.settle()
    assert cube.sent["Pub"] == 2


def test_one_broker_is_a_hypercube_too() -> None:
    cube = Cube(1)
    cube.subscribe(0)
    cube.publish(0)
    cube.publish(0)
    assert cube.got(0) == ["c0:1", "c0:2"]
    assert [taken.seq for taken in cube.received_by(0, Taken)] == [1, 2]
    assert not cube.sent


# ---- events


def test_an_event_goes_to_the_members_alone_one_copy_each() -> None:
    cube = Cube(16)
    cube.subscribe(1, 4, 5, 11, 14)
    cube.sent.clear()
    cube.publish(5)
    cube.settle()
    assert cube.sent == {"Pub": 4, "Ack": 4}
    assert [number for number in range(16) if cube.got(number)] == [1, 4, 5, 11, 14]


def test_an_advertiser_makes_its_broker_a_member_and_receives_nothing() -> None:
    cube = Cube(4)
    cube.subscribe(3)
    cube.call(0, ClientAdvertise(1, "t"))
    cube.publish(0)
    cube.settle()
    assert cube.received_by(0, Ready) == [Ready(1, {})]
    assert cube.got(3) == ["c0:1"]
    assert cube.got(0) == []


def test_publications_go_out_before_their_broker_leaves() -> None:
    cube = Cube(4)
    cube.subscribe(3)
    cube.call(0, ClientAdvertise(1, "t"))
    cube.publish(0)
    cube.publish(0)
    cube.call(0, ClientEnd(1, "t"))
    cube.settle()
    assert cube.got(3) == ["c0:1", "c0:2"]
    assert cube.size(3, "members") == 1


def test_the_next_event_is_delivered_after_the_last_is_acknowledged() -> None:
    cube = Cube(8)
    cube.subscribe(*range(8))
    cube.publish(0)
    cube.publish(0)
    cube.settle(but={(3, 2)})
    assert cube.got(5) == ["c0:1"]
    assert cube.received_by(0, Taken) == []
    assert cube.size(0, "queued") == 1
    cube.settle()
    assert cube.got(5) == ["c0:1", "c0:2"]
    assert [taken.seq for taken in cube.received_by(0, Taken)] == [1, 2]
    assert all(cube.size(number, "waves") == 0 for number in range(8))


def test_topics_do_not_wait_for_each_other() -> None:
    cube = Cube(2)
    for number in (0, 1):
        cube.call(number, ClientSubscribe(1, "t"))
        cube.call(number, ClientSubscribe(2, "u"))
    cube.settle()
    cube.publish(0)
    cube.call(0, ClientPublish("u", Event("c0", 2, {"topic": "u"})))
    assert len(cube.links["b0", "b1"]) == 2


def test_a_broker_that_left_forwards_messages_that_still_reach_it() -> None:
    cube = Cube(8, measured=True)
    cube.subscribe(0, 4, 5)
    cube.call(4, ClientEnd(1, "t"))
    cube.publish(0)
    assert isinstance(cube.deliver(0, 4), Pub)
    cube.settle()
    assert cube.got(5) == ["c0:1"]
    assert cube.got(4) == []
    measures = cube.nodes["b4"].measures
    assert measures is not None
    assert measures.false_positives == {0: 1}


# ---- starting cuts


def test_a_new_member_starts_after_what_others_have_delivered() -> None:
    cube = Cube(4)
    cube.subscribe(0, 1)
    cube.publish(0)
    cube.settle()
    cube.subscribe(3)
    assert cube.received_by(3, Ready) == [Ready(1, {"c0": 2})]
    cube.publish(1)
    cube.settle()
    assert cube.got(3) == ["c1:1"]


def test_a_former_publisher_still_answers_for_its_events() -> None:
    """c1:1 depends on c0:1, whose publisher has left permanently."""
    cube = Cube(4)
    cube.subscribe(0, 1)
    cube.publish(0)
    cube.settle()
    cube.call(0, ClientEnd(1, "t"))
    cube.settle()
    cube.subscribe(3)
    cube.publish(1)
    cube.settle()
    assert cube.got(3) == ["c1:1"]


def test_messages_received_while_joining_are_kept_until_all_have_answered() -> None:
    cube = Cube(4)
    cube.subscribe(0)
    cube.subscribe(1, settle=False)
    cube.settle(but={(2, 3)})
    cube.publish(0)
    cube.settle(but={(2, 3), (3, 2), (3, 1), (2, 0)})
    assert cube.size(1, "waiting") == 1
    assert cube.got(1) == []
    cube.settle()
    assert cube.got(1) == ["c0:1"]


def test_a_message_for_an_earlier_membership_is_omitted() -> None:
    cube = Cube(4)
    cube.subscribe(0, 1)
    cube.publish(0)
    cube.call(1, ClientEnd(1, "t"))
    cube.settle(but={(0, 1)})
    late = cube.links["b0", "b1"].popleft()
    assert isinstance(late, Pub)
    cube.settle()
    cube.call(1, ClientSubscribe(2, "t"))
    cube.settle()
    cube.step("b1", "b0", late)
    cube.publish(0)
    cube.settle()
    assert cube.received_by(1, Ready)[-1].cuts == {"c0": 2}
    assert cube.got(1) == ["c0:2"]


# ---- bounds and options


def test_too_many_topics_are_refused() -> None:
    cube = Cube(2, topics_max=2)
    for number, name in enumerate(("t", "u", "v")):
        cube.call(0, ClientSubscribe(number, name))
    cube.settle()
    assert [ready.number for ready in cube.received_by(0, Ready)] == [0, 1]
    assert cube.received_by(0, Refused) == [
        Refused(2, "the broker already serves 2 topics, which is the maximum; use one of these, or another broker"),
    ]
    cube.call(0, ClientPublish("v", Event("c0", 1, {"topic": "v"})))
    cube.call(0, ClientEnd(2, "v"))
    cube.settle()
    assert cube.size(0, "topics") == 2


def test_acknowledgements_are_withheld_while_the_backlog_is_too_large() -> None:
    """c1's event cannot be delivered at b3 before c0's, which is slow; meanwhile c1 must not publish without limit."""
    cube = Cube(4, waiting_max=1)
    cube.subscribe(0, 1, 3)
    cube.publish(0)
    cube.deliver(0, 1)
    for _ in range(4):
        cube.publish(1)
    cube.settle(but={(0, 3)})
    assert cube.size(3, "waiting") == 2
    assert cube.size(1, "queued") == 2
    cube.settle()
    assert cube.got(3) == ["c0:1", "c1:1", "c1:2", "c1:3", "c1:4"]


def test_withheld_messages_are_acknowledged_on_leaving() -> None:
    cube = Cube(4, waiting_max=1)
    cube.subscribe(0, 1, 3)
    cube.publish(0)
    cube.deliver(0, 1)
    for _ in range(4):
        cube.publish(1)
    cube.settle(but={(0, 3)})
    cube.call(3, ClientEnd(1, "t"))
    cube.settle(but={(0, 3)})
    assert cube.size(1, "queued") == 0
    cube.settle()
    assert cube.got(0) == ["c0:1", "c1:1", "c1:2", "c1:3", "c1:4"]


def test_members_from_the_start_need_not_join() -> None:
    cube = Cube(8, initial_members={"t": ("b1", "b6")})
    cube.subscribe(1, 6)
    cube.publish(1)
    cube.settle()
    assert cube.got(6) == ["c1:1"]
    assert cube.sent == {"Pub": 1, "Ack": 1}
    cube.subscribe(4)
    cube.publish(6)
    cube.settle()
    assert cube.got(4) == ["c6:1"]


def test_measures() -> None:
    cube = Cube(4, measured=True)
    cube.subscribe(0, 1, 2)
    cube.publish(0)
    cube.settle()
    cube.publish(1)
    cube.settle()
    measures = cube.nodes["b2"].measures
    assert measures is not None
    assert measures.received == {0: 1, 1: 1}
    assert measures.delays_us == {0: 2}


def test_only_messages_change_the_state_and_stray_ones_are_harmless() -> None:
    cube = Cube(4)
    assert cube.nodes["b0"].step(Start(), 0) == ()
    cube.step("b0", "b1", Ack(0, "t", 5))
    cube.step("b0", "b1", Uns(1, "t", 5, b""))
    cube.call(0, ClientEnd(7, "t"))
    cube.call(0, ClientPublish("t", Event("c0", 1, {"topic": "t"})))
    assert cube.sent == {"Ack": 1}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"waiting_max": 0}, "waiting_max is 0, but must be at least 1"),
        (
            {"switched_off": ["barriers"]},
            "there is no repair 'barriers' to switch off; the repairs are: receivers, starting-cut",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        convert_options(find_protocol("vcube"), options)
