"""Errors of the paper's pseudo-code, reproduced step by step, do not occur with the repairs."""

import pytest

from gapless_papers.protocols.vcube.messages import ClientEnd, Pub
from tests.papers.protocols.vcube.vcube_cube import Cube

AS_PRINTED = ("receivers", "starting-cut")


@pytest.mark.parametrize("switched_off", [(), AS_PRINTED])
def test_a_new_member_that_knows_no_peer_yet_passes_messages_on(switched_off: tuple[str, ...]) -> None:
    """b0 knows b4 and leaves the other half of the cube to it, but b4 does not know b5 yet."""
    cube = Cube(8, switched_off=switched_off)
    cube.subscribe(0, 5)
    cube.subscribe(4, settle=False)
    cube.deliver(4, 0)
    cube.publish(0)
    while not isinstance(cube.deliver(0, 4), Pub):
        pass
    cube.settle()
    assert cube.got(5) == ([] if switched_off else ["c0:1"])


@pytest.mark.parametrize("switched_off", [(), AS_PRINTED])
def test_a_cause_from_before_the_start_is_not_waited_for(switched_off: tuple[str, ...]) -> None:
    """Figure 2: p3 joins after m(2,1), on which m(1,2) depends, and p2 publishes nothing more."""
    cube = Cube(4, switched_off=switched_off)
    cube.subscribe(0, 1, 2)
    cube.publish(2)
    cube.settle()
    cube.subscribe(3)
    cube.publish(1)
    cube.settle()
    assert cube.got(0) == ["c2:1", "c1:1"]
    assert cube.got(3) == ([] if switched_off else ["c1:1"])


@pytest.mark.parametrize("switched_off", [(), ("starting-cut",)])
def test_an_omitted_message_hides_no_cause(switched_off: tuple[str, ...]) -> None:
    """b7 joins. b6 learns of it and publishes c6:1. b3 has not learned of it and answers with c3:1, which b7 never
    receives. b5 has learned of it and answers with c5:1. The only cause that c5:1 names is c3:1, and c6:1 is slow
    on its way to b7.
    """
    cube = Cube(8, switched_off=switched_off)
    cube.subscribe(3, 5, 6)
    cube.subscribe(7, settle=False)
    cube.deliver(7, 6)
    slow = {(6, 7), (7, 3)}
    for publisher in (6, 3, 5):
        cube.publish(publisher)
        cube.settle(but=slow)
    assert cube.got(3) == cube.got(5) == ["c6:1", "c3:1", "c5:1"]
    cube.settle(but={(6, 7)})
    cube.publish(3)
    cube.settle(but={(6, 7)})
    cube.settle()
    assert cube.got(7) == (["c5:1", "c3:2", "c6:1"] if switched_off else ["c3:2"])


@pytest.mark.parametrize("switched_off", [(), AS_PRINTED])
def test_a_message_for_an_earlier_membership_causes_no_gap(switched_off: tuple[str, ...]) -> None:
    """b1 leaves and rejoins before a message from its first membership arrives; meanwhile b0 publishes without it."""
    cube = Cube(4, switched_off=switched_off)
    cube.subscribe(0, 1)
    cube.publish(0)
    cube.call(1, ClientEnd(1, "t"))
    late = cube.links["b0", "b1"].popleft()
    cube.settle()
    cube.subscribe(1, settle=False)
    cube.step("b1", "b0", late)
    cube.settle()
    cube.publish(0)
    cube.settle()
    assert cube.got(1)[-1] == "c0:2"
    assert ("c0:1" in cube.got(1)) == bool(switched_off)
