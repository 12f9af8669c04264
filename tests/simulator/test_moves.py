"""Random scenarios in which durable subscriptions are moved, deleted, and acknowledged one by one."""

from gapless.simulator.generator import generate
from gapless.simulator.scenario import AckEachAction, MoveAction, NackAction, SubscribeAction


def test_everything_that_can_be_done_with_durable_subscriptions_is_drawn() -> None:
    drawn = [action for seed in range(400) for action in generate(seed, "gapless", faults="none").actions]
    assert {action.to for action in drawn if isinstance(action, MoveAction)} == {"earliest", "nowhere"}
    assert any(isinstance(action, AckEachAction) for action in drawn)
    assert any(isinstance(action, NackAction) for action in drawn)
    durable = [action for action in drawn if isinstance(action, SubscribeAction) and action.name]
    assert {action.group for action in durable} == {False, True}
    assert any(action.max_deliveries for action in durable)
    assert any(action.filter == "misfit = 1" for action in durable)


def test_protocols_without_durable_subscriptions_are_given_none() -> None:
    drawn = [action for seed in range(100) for action in generate(seed, "srpt", faults="none").actions]
    assert not any(isinstance(action, MoveAction | AckEachAction | NackAction) for action in drawn)
