"""Events published together are validated, split into messages, and unaffected by later changes of their inputs."""

import re
from random import Random
from typing import Any

import pytest

from gapless.client.publications import Batch, check_all, check_publication


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


def test_a_batch_does_not_change_with_what_it_was_made_of() -> None:
    attributes = {"x": "a", "n": 1}
    items: list[Any] = [(attributes, b"1"), ({"x": "b", "n": 2}, b"2")]
    for chosen in (items, [*items, ({"x": "c"}, b"3")]):
        attributes["x"] = "a"
        batch, _ = check_all(chosen, 100)
        attributes["x"] = "changed later"
        assert batch.call(0, 1).publications()[0].attributes == {"x": "a", "n": 1}


@pytest.mark.parametrize(
    ("odd", "complaint"),
    [
        ({"x": 2**63, "n": 1}, "does not fit into a signed 64-bit integer"),
        ({"x": "\ud800", "n": 1}, "half of a surrogate pair"),
        ({"x": None, "n": 1}, "is of type NoneType"),
        ({"x": "a" * 200, "n": 1}, "has 2[0-9]+ bytes, but 150 is the limit"),
        ({"": "a", "n": 1}, "the name of an attribute is empty"),
        ({1: "a", "n": 1}, "is not a string"),
        ((({"x": "a", "n": 1}), "text"), "a payload must be bytes"),
        (({"x": "a", "n": 1}, b"", b""), "has 3 parts"),
        (7, "attributes must be a dictionary"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 7])
def test_an_event_that_cannot_be_published_ends_a_batch_at_any_index(odd: Any, complaint: str, at: int) -> None:
    items: list[Any] = [({"x": "a", "n": n}, b"") for n in range(7)]
    items.insert(at, odd)
    batch, error = check_all(items, 150)
    assert len(batch) == at
    assert error is not None
    assert re.search(complaint, str(error))


def test_non_ascii_text_counts_by_its_bytes() -> None:
    items: list[Any] = [{"x": "ä", "n": n} for n in range(3)]
    batch, error = check_all(items, 100)
    assert error is None
    assert batch.sizes == [16 + 1 + 2 + 16 + 1] * 3


def test_a_zero_keeps_its_sign() -> None:
    batch, _ = check_all([{"x": x} for x in (0.0, -0.0, 0.0, 0)], 100)
    assert [str(call.attributes["x"]) for call in batch.call(0, 4).publications()] == ["0.0", "-0.0", "0.0", "0"]


def test_events_before_an_invalid_one_are_delivered() -> None:
    batch, error = check_all([({"x": "a"}, b"1"), ({"x": "a"}, bytes(200)), ({"x": "a"}, b"3")], 100)
    assert batch.payloads == [b"1"]
    assert "has 218 bytes, but 100 is the limit" in str(error)
