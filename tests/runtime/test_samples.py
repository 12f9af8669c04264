"""Samples of a broker's figures: one every few seconds, a bounded number, and what the protocol reports."""

import itertools
from typing import Any

from gapless.runtime.samples import EVERY_S, SAMPLES_MAX, Samples

LATENCY = {"buckets": {"0.001": 2, "0.01": 5}, "count": 6, "sum_s": 0.1}
OVERVIEW: dict[str, Any] = {
    "published": 4, "delivered": 9, "lag": {"ann": 3, "bob": 7}, "history": {"bytes": 1_000},
    "confirmation_latency": LATENCY, "delivery_latency": LATENCY,
}  # fmt: skip


def test_a_sample_is_taken_every_few_seconds_and_the_last_ones_are_kept() -> None:
    samples = Samples()
    looks = 2 * (SAMPLES_MAX + 10)
    for number in range(looks):
        samples.look(1_000_000 + number * EVERY_S / 2, OVERVIEW | {"published": number}, number, 0.0)
    rows = samples.report()["rows"]
    assert len(rows) == SAMPLES_MAX
    assert {later.time - earlier.time for earlier, later in itertools.pairwise(rows)} == {EVERY_S}
    assert rows[-1].published == looks - 2


def test_a_sample_has_the_figures_that_the_protocol_reports() -> None:
    samples = Samples()
    samples.look(1_000, OVERVIEW, 77, 1.25)
    samples.look(1_005, {"published": 4}, 78, 0)
    found = samples.report()
    assert found["bounds"] == {"confirmation": [0.001, 0.01], "delivery": [0.001, 0.01]}
    first, second = found["rows"]
    assert (first.published, first.delivered, first.lag, first.history, first.bytes_out) == (4, 9, 7, 1_000, 77)
    assert first.confirmation == first.delivery == [2, 5, 6]
    assert (second.published, second.delivered, second.lag, second.history) == (4, None, None, None)
    assert second.confirmation is None
