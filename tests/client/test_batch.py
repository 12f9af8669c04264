"""Events published together are validated, split into messages, and unaffected by later changes of their inputs."""

from random import Random
from typing import Any

import pytest

from gapless.client.publications import Batch, check_all, check_publication
from gapless.protocol import PublishMany


@pytest.mark.parametrize("seed", range(30))
def test_a_batch_is_its_publications_one_by_one(seed: int) -> None:
    dice = Random(seed)
    kinds: list[Any] = [{"x": "a"}, {"x": "b"}, {"n": 1}, {"n": 1.0}, {"n": True}, {}]
    items = [(dice.choice(kinds[: dice.randint(1, 6)]), bytes(dice.randint(0, 9))) for _ in range(dice.randint(1, 40))]
    checked = [check_publication(item, 100) for item in items]
    batch, error = check_all(items, 100)
    assert error is None
    fed = Batch()
    for each in checked:
        fed.add(each)
    for found in (batch, fed):
        assert found.sizes == [size for _, size in checked]
        begin, calls = 0, []
        while begin < len(found):
            end = found.fitting(begin, dice.randint(1, 20), 60)
            sizes = found.sizes[begin:end]
            assert sum(sizes[:-1]) < 60
            calls += found.call(begin, end).publications()
            begin = end
        assert calls == [call for call, _ in checked]
        assert [[*map(type, call.attributes.values())] for call in calls] == [
            [*map(type, attributes.values())] for attributes, _ in items
        ]


def test_what_is_alike_is_told_once() -> None:
    attributes = {"x": "a"}
    items: list[Any] = [(attributes, b"1"), ({"x": "a"}, b"2"), ({"n": 1}, b"3"), ({"n": 1}, b"4"), ({"n": True}, b"5")]
    batch, _ = check_all(items, 100)
    attributes["x"] = "changed later"
    assert batch.call(0, 5) == PublishMany(
        [b"1", b"2", b"3", b"4", b"5"], [({"x": "a"}, 2), ({"n": 1}, 4), ({"n": True}, 5)]
    )
    assert batch.call(1, 3) == PublishMany([b"2", b"3"], [({"x": "a"}, 1), ({"n": 1}, 2)])


def test_a_zero_keeps_its_sign() -> None:
    batch, _ = check_all([{"x": x} for x in (0.0, -0.0, 0.0, 0)], 100)
    assert [str(call.attributes["x"]) for call in batch.call(0, 4).publications()] == ["0.0", "-0.0", "0.0", "0"]


def test_what_comes_before_a_bad_one_is_there() -> None:
    batch, error = check_all([({"x": "a"}, b"1"), ({"x": "a"}, bytes(200)), ({"x": "a"}, b"3")], 100)
    assert batch.payloads == [b"1"]
    assert "has 218 bytes, but 100 is the limit" in str(error)
