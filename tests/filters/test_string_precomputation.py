"""Many patterns on one long string are evaluated in pieces beforehand, and the match uses the results."""

from typing import Any

import pytest

from gapless.filters import FilterIndex, parse
from gapless.filters.string_precomputation import LONG, STEPS, TEXTS_MAX, StringPrecomputation

NOTE = "ab" * 30_000
PATTERNS = [f"note LIKE '%a_a{'_' * (number % 7)}b{'x' * (number % 3)}%'" for number in range(60)]


def an_index(*filters: str) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex()
    for number, text in enumerate(filters):
        index.add(number, parse(text))
    return index


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    ask = StringPrecomputation.ask

    def counted(self: StringPrecomputation, number: int, cost: int, text: str, look: Any) -> bool:
        def looked(text: str) -> bool:
            found.append((number, text))
            return bool(look(text))

        return ask(self, number, cost, text, looked)

    monkeypatch.setattr(StringPrecomputation, "ask", counted)
    return found


def test_it_takes_pieces_and_then_the_match_looks_for_nothing(looks: list[tuple[int, str]]) -> None:
    index = an_index(*PATTERNS)
    pieces = 0
    before = 0
    for steps in index.precompute({"note": NOTE}):
        pieces += 1
        assert steps >= STEPS
        assert len(looks) > before, "each piece gets on"
        assert (len(looks) - before - 1) * 8 * len(NOTE) <= STEPS
        before = len(looks)
    assert pieces > 3
    assert len(looks) == len(set(looks)), "nothing is looked for twice"
    looks.clear()
    expected = [number for number, text in enumerate(PATTERNS) if parse(text).matches({"note": NOTE})]
    assert index.match({"note": NOTE}) == expected
    assert index.match_many([{"note": NOTE}, {"note": "b" * 2 * LONG}]) == [expected, []]
    assert {text for _, text in looks} == {"b" * 2 * LONG}, "only what nobody has foreseen"
    assert 0 < len(expected) < len(PATTERNS)


def test_only_those_that_the_rest_of_a_filter_leaves_are_looked_for(looks: list[tuple[int, str]]) -> None:
    index = an_index(*(f"x = {number % 10} AND {text}" for number, text in enumerate(PATTERNS)))
    assert all(index.precompute({"note": NOTE, "x": 3}))
    assert 0 < len(looks) <= len(PATTERNS) // 10


def test_nothing_is_precomputed_without_patterns_or_without_long_strings(looks: list[tuple[int, str]]) -> None:
    index = an_index("x > 0", "note = 'a'")
    assert not index.has_searches
    assert list(index.precompute({"note": NOTE})) == []
    index.add(7, parse(PATTERNS[0]))
    assert index.has_searches
    assert list(index.precompute({"note": "ab" * 100})) == []
    index.remove(7)
    assert not index.has_searches
    assert looks == []


def test_answers_are_kept_for_so_many_strings(looks: list[tuple[int, str]]) -> None:
    index = an_index(PATTERNS[0])
    texts = [f"{number}{'b' * LONG}" for number in range(TEXTS_MAX + 1)]
    for text in texts:
        assert list(index.precompute({"note": text})) == []
    looks.clear()
    for text in reversed(texts):
        index.match({"note": text})
    assert looks == [(looks[0][0], texts[0])]
