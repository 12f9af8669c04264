"""Events with long strings are matched with many patterns in several turns, and nothing overtakes them."""

import pytest

from gapless.filters import string_precomputation
from gapless.protocols.gapless import foreseeing
from gapless.protocols.gapless.turns import GO_ON, Turns
from gapless.simulator import parse_scenario, try_scenario

NOTE = "a" * 3_000
FILTERS = [f"note LIKE '%a_{'a' * number}b%' OR n > 0" for number in range(12)]
TEXT = """
name = "long notes"
network = { shape = "chain", brokers = 3 }
protocol = { name = "gapless", options = { work_per_turn = 50 } }
clients = [{ name = "p", broker = "b0" }, { name = "q", broker = "b2" }, { name = "c", broker = "b2" }]
""" + "".join(
    f'[[actions]]\ndo = "subscribe"\nat_ms = {number}.0\nclient = "c"\nsubscription = "s{number}"\nfilter = "{text}"\n'
    for number, text in enumerate(FILTERS)
)
PUBLICATIONS = "".join(
    f'[[actions]]\ndo = "advertise"\nat_ms = 100.0\nclient = "{client}"\nadvertisement = "{client}"\nfilter = "TRUE"\n'
    + "".join(
        f'[[actions]]\ndo = "publish"\nat_ms = {200.0 + 3 * number}\nclient = "{client}"\n'
        f'attributes = {{ n = {number}, note = "{NOTE + str(number) if number % 2 else "short"}" }}\n'
        for number in range(1, 11)
    )
    for client in "pq"
)


def test_in_several_turns_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_precomputation, "STEPS", 100)
    monkeypatch.setattr(foreseeing, "STEPS_PER_UNIT", 2)
    turns = 0
    take = Turns.take

    def counted(self: Turns, item: object) -> None:
        nonlocal turns
        turns += item == GO_ON
        take(self, item)  # type: ignore[arg-type]

    monkeypatch.setattr(Turns, "take", counted)
    outcome = try_scenario(parse_scenario(TEXT + PUBLICATIONS))
    assert outcome.status == "valid", outcome.summary
    assert outcome.verdict is not None
    assert outcome.verdict.deliveries == 20 * len(FILTERS)
    assert turns > 10
