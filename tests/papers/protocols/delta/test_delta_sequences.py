"""Sequence vectors: they detect copies of a message, provided that its paths are legitimate."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gapless_papers.protocols.delta.messages import Vector
from gapless_papers.protocols.delta.sequences import BYPASSED, VISITED, Sequences


def vector(*entries: tuple[str, int]) -> Vector:
    return tuple([(name, 0, number) for name, number in entries])


def test_a_number_that_is_not_higher_is_a_duplicate() -> None:
    sequences = Sequences("b9", 0, 1)
    assert not sequences.is_duplicate(vector(("b1", 5), ("b2", 7)))
    assert sequences.is_duplicate(vector(("b1", 5)))
    assert sequences.is_duplicate(vector(("b2", 6), ("b3", 1)))
    assert not sequences.is_duplicate(vector(("b1", 6), ("b2", 8), ("b3", 2)))


def test_one_low_number_is_enough_and_the_others_count_from_then_on() -> None:
    sequences = Sequences("b9", 0, 1)
    sequences.is_duplicate(vector(("b1", 5)))
    assert sequences.is_duplicate(vector(("b1", 5), ("b2", 9)))
    assert sequences.is_duplicate(vector(("b2", 9)))


def test_a_bypassed_broker_assigned_no_number() -> None:
    sequences = Sequences("b9", 0, 1)
    assert not sequences.is_duplicate(vector(("b1", 1), ("b2", BYPASSED)))
    assert not sequences.is_duplicate(vector(("b1", 2), ("b2", BYPASSED), ("b3", VISITED)))
    assert len(sequences) == 1


def test_a_former_incarnation_is_counted_separately() -> None:
    sequences = Sequences("b9", 0, 1)
    assert not sequences.is_duplicate((("b1", 1, 1),))
    assert not sequences.is_duplicate((("b1", 0, 8),)), "late, but never seen"
    assert sequences.is_duplicate((("b1", 0, 8),))


def test_a_vector_is_as_long_as_duplicates_need_it() -> None:
    sequences = Sequences("b5", 2, 1)
    way = vector(("p", 1), ("b1", 1), ("b2", 1), ("b3", 1))
    assert sequences.extended(way, 4, ("b6",)) == (("b2", 0, 1), ("b3", 0, 1), ("b5", 2, 4), ("b6", 0, BYPASSED))


def test_legitimacy_weak_and_strong() -> None:
    sequences = Sequences("b9", 0, 1)
    assert sequences.is_legitimate(vector(("b1", BYPASSED), ("b2", 1), ("b3", 1), ("b4", BYPASSED)))
    assert not sequences.is_legitimate(vector(("b1", 1), ("b2", BYPASSED), ("b3", 1), ("b4", BYPASSED)))
    assert sequences.is_strongly_legitimate(("b1", "b2", "b3", "b4"), ("b4",))
    assert not sequences.is_strongly_legitimate(("b1", "b2", "b3", "b4"), ("b1", "b4"))


def test_another_copy_names_brokers_that_were_not_bypassed_without_numbers() -> None:
    first = vector(("p", 1), ("b1", BYPASSED), ("b2", 4), ("b3", BYPASSED))
    second = vector(("p", 1), ("b1", 9), ("b2", 4), ("b3", BYPASSED))
    merged = Sequences("b9", 0, 1).merged(first, second)
    assert merged == vector(("p", 1), ("b1", VISITED), ("b2", 4), ("b3", BYPASSED))


@settings(max_examples=60)
@given(st.integers(1, 3), st.data())
def test_two_legitimate_paths_share_a_broker(delta: int, data: st.DataObject) -> None:
    """Section VI claims that the second of two copies is recognized whatever they bypass, even without the
    publisher's own entry.
    """
    length = data.draw(st.integers(2 * delta + 1, 4 * delta + 4))
    brokers = [f"b{place}" for place in range(length)]
    everyone = {name: Sequences(name, 0, delta) for name in brokers}
    numbers = {name: place + 1 for place, name in enumerate(brokers)}
    receiver = Sequences("receiver", 0, delta)
    for copy in range(2):
        skipped = data.draw(st.sets(st.sampled_from(brokers[1:]), max_size=length // 2), label=f"copy {copy}")
        way: Vector = ()
        place = 0
        while place < length:
            nearest = next((n for n in range(place + 1, length) if brokers[n] not in skipped), length)
            bypassed = tuple(brokers[place + 1 : nearest])
            assume(len(bypassed) <= delta)
            way = everyone[brokers[place]].extended(way, numbers[brokers[place]], bypassed)
            assume(not bypassed or everyone[brokers[place]].is_legitimate(way))
            place = nearest
        assert receiver.is_duplicate(way) == (copy == 1)
