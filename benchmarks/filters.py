"""Measures how fast filters are parsed and matched, compared with brute force in the same run.

Events have 20 attributes: ten strings of ten values each and ten integers below 10,000, all uniformly distributed.
Filters are conjunctions of 3 to 5 constraints on distinct attributes. Up to two of these are equalities of strings; the
others are intervals of integers, wide enough that each filter matches the stated share of events. Bounds of intervals
are uniformly distributed, so hardly any two filters share one. Brute force evaluates the compiled closure of every
filter. Times are processor times, which depend little on other work on the machine.

The second workload has ranges of strings: events with ten times of one year as ISO text, to the second, and filters of
one to three intervals of such times.

    python -m benchmarks.filters [--quick] [--json]
    python -m benchmarks.filters --load 1000000     # 1.7 GB, minutes
    python -m benchmarks.filters --load 1000000 --strings
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gapless.filters import Filter, FilterIndex

TIMES = [f"t{i:02}" for i in range(10)]
FIRST_TIME = datetime(2026, 1, 1)
YEAR_S = 365 * 86_400
STRINGS = [f"s{i:02}" for i in range(10)]
NUMBERS = [f"n{i:02}" for i in range(10)]
STRING_VALUES = 10
NUMBER_MAX = 10_000
BATCH = 256
CHANGES = 5_000
"""The number of removed filters, and of added ones."""
SELECTIVITY = 0.001

Attributes = dict[str, str | int | float | bool]


def filter_text(random_: random.Random, selectivity: float) -> str:
    size = random_.randint(3, 5)
    equalities = random_.randint(0, 2)
    width = (selectivity * STRING_VALUES**equalities) ** (1 / (size - equalities)) * NUMBER_MAX
    terms = [f"{name} = 'v{random_.randrange(STRING_VALUES)}'" for name in random_.sample(STRINGS, equalities)]
    terms += [_interval(random_, name, width) for name in random_.sample(NUMBERS, size - equalities)]
    random_.shuffle(terms)
    return " AND ".join(terms)


def _interval(random_: random.Random, name: str, width: float) -> str:
    form = random_.randrange(4)
    if form == 0:
        return f"{name} < {width + random_.uniform(-0.5, 0.5):.0f}"
    if form == 1:
        return f"{name} >= {NUMBER_MAX - width + random_.uniform(-0.5, 0.5):.0f}"
    low = random_.uniform(0, NUMBER_MAX - width)
    return f"{name} BETWEEN {low:.0f} AND {low + width - 1:.0f}"


def event(random_: random.Random) -> Attributes:
    attributes: Attributes = {name: f"v{random_.randrange(STRING_VALUES)}" for name in STRINGS}
    attributes.update({name: random_.randrange(NUMBER_MAX) for name in NUMBERS})
    return attributes


def string_filter_text(random_: random.Random, selectivity: float) -> str:
    """Return a filter with intervals of ISO times."""
    size = random_.randint(1, 3)
    width = selectivity ** (1 / size) * YEAR_S
    terms = []
    for name in random_.sample(TIMES, size):
        low = random_.uniform(0, YEAR_S - width)
        terms.append(f"{name} BETWEEN '{_time(low)}' AND '{_time(low + width)}'")
    return " AND ".join(terms)


def string_event(random_: random.Random) -> Attributes:
    return {name: _time(random_.uniform(0, YEAR_S)) for name in TIMES}


def _time(seconds_: float) -> str:
    return (FIRST_TIME + timedelta(seconds=seconds_)).isoformat(timespec="seconds") + "Z"


class Workload(NamedTuple):
    """Filters of a given selectivity, and events."""

    filter_text: Callable[[random.Random, float], str]
    event: Callable[[random.Random], Attributes]


MIXED = Workload(filter_text, event)
STRING_RANGES = Workload(string_filter_text, string_event)


def seconds(action: Callable[[], Any], at_least: float) -> float:
    """Return the time of one call: the best of three rounds, each long enough to be reliable."""
    best, calls = float("inf"), 1
    for _ in range(3):
        while True:
            start = time.process_time()
            for _ in range(calls):
                action()
            elapsed = time.process_time() - start
            if elapsed >= at_least:
                break
            calls *= 2
        best = min(best, elapsed / calls)
    return best


def settle(index: FilterIndex[int]) -> None:
    """Match events until the index has moved all filters to their final places (`store`)."""
    nothing: list[Attributes] = [{} for _ in range(BATCH)]
    for _ in range(min(len(index) * 5 // 4, 150_000) // BATCH):
        index.match_many(nothing)


def measure(count: int, selectivity: float, at_least: float, workload: Workload = MIXED) -> dict[str, float]:
    random_ = random.Random(count)
    texts = [workload.filter_text(random_, selectivity) for _ in range(count)]
    events = [workload.event(random_) for _ in range(BATCH)]
    start = time.process_time()
    filters = [Filter(text) for text in texts]
    parsing = time.process_time() - start

    gc.collect()
    index: FilterIndex[int] = FilterIndex()
    start = time.process_time()
    for key, each in enumerate(filters):
        index.add(key, each)
    adding = time.process_time() - start

    start = time.process_time()
    settle(index)
    settling = time.process_time() - start
    found = [index.match(each) for each in events]
    assert found == index.match_many(events)
    one = seconds(lambda: [index.match(each) for each in events], at_least) / BATCH
    many = seconds(lambda: index.match_many(events), at_least) / BATCH

    tests = [each.test for each in filters]
    some = events[: max(1, 300_000 // count)]
    assert [[key for key, test in enumerate(tests) if test(each)] for each in some[:2]] == found[:2]
    brute = seconds(lambda: [[key for key, test in enumerate(tests) if test(each)] for each in some], at_least)
    brute /= len(some)

    start = time.process_time()
    removed = range(0, count, 4)
    for key in removed:
        index.remove(key)
    removing = time.process_time() - start
    return {
        "filters": count,
        "matches_per_event": sum(map(len, found)) / BATCH,
        "events_per_s_one_by_one": 1 / one,
        "events_per_s_in_batches": 1 / many,
        "events_per_s_brute_force": 1 / brute,
        "ratio_one_by_one": brute / one,
        "ratio_in_batches": brute / many,
        "parsed_per_s": count / parsing,
        "added_per_s": count / adding,
        "settled_s": settling,
        "removed_per_s": len(removed) / removing,
    }


def memory(count: int) -> dict[str, float]:
    """Return the bytes per filter: parsed, and the additional bytes in the index."""
    random_ = random.Random(count)
    texts = [filter_text(random_, SELECTIVITY) for _ in range(count)]
    tracemalloc.start()
    filters = [Filter(text) for text in texts]
    parsed = tracemalloc.get_traced_memory()[0]
    index: FilterIndex[int] = FilterIndex()
    for key, each in enumerate(filters):
        index.add(key, each)
    settle(index)
    indexed = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"filters": count, "bytes_parsed": parsed / count, "bytes_indexed": (indexed - parsed) / count}


def changes(count: int) -> dict[str, float]:
    """Add and remove filters in a full index; return the rate, the longest single call, and the rate of matching
    meanwhile.

    Garbage collection is off, as it is most of the time in a broker, because its pauses do not belong to the index.
    """
    random_ = random.Random(count)
    fresh = [Filter(filter_text(random_, SELECTIVITY)) for _ in range(CHANGES)]
    index: FilterIndex[int] = FilterIndex()
    for key in range(count):
        index.add(key, Filter(filter_text(random_, SELECTIVITY)))
    longest = total = matching = 0.0
    events = [event(random_) for _ in range(BATCH)]
    settle(index)
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for one in events:
            index.match(one)
        alone = time.process_time() - start
        for number, each in enumerate(fresh):
            for action in (partial(index.remove, number), partial(index.add, count + number, each)):
                start = time.process_time()
                action()
                seconds_taken = time.process_time() - start
                longest, total = max(longest, seconds_taken), total + seconds_taken
            start = time.process_time()
            for one in events[number % 32 * 8 :][:8]:
                index.match(one)
            matching += time.process_time() - start
    finally:
        gc.enable()
    return {
        "filters": count,
        "changes_per_s": 2 * CHANGES / total,
        "longest_ms": longest * 1e3,
        "events_per_s_before": BATCH / alone,
        "events_per_s_meanwhile": 8 * CHANGES / matching,
    }


def load(count: int, workload: Workload) -> dict[str, float]:
    """Add filters one after the other and match some events; return the rates."""
    random_ = random.Random(count)
    index: FilterIndex[int] = FilterIndex()
    gc.freeze()
    gc.disable()
    start = time.process_time()
    for key in range(count):
        index.add(key, Filter(workload.filter_text(random_, 10 / count)))
    loading = time.process_time() - start
    batch = [workload.event(random_) for _ in range(BATCH)]
    settle(index)
    start = time.process_time()
    found = index.match_many(batch)
    matching = time.process_time() - start
    gc.enable()
    return {
        "filters": count,
        "loaded_per_s": count / loading,
        "events_per_s_in_batches": BATCH / matching,
        "matches_per_event": sum(map(len, found)) / BATCH,
        "peak_bytes_per_filter": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / count,
    }


def run(quick: bool) -> dict[str, Any]:
    counts, at_least = ((1_000, 10_000), 0.05) if quick else ((1_000, 10_000, 100_000), 0.5)
    few, many = (1_000, 10_000) if quick else (10_000, 100_000)
    matching = [measure(count, SELECTIVITY, at_least) for count in counts]
    base = next(row for row in matching if row["filters"] == few)
    held = measure(many, SELECTIVITY * few / many, at_least)
    return {
        "workload": {"attributes": 20, "constraints": "3-5", "selectivity": SELECTIVITY, "batch": BATCH},
        "python": sys.version.split()[0],
        "matching": matching,
        "string_ranges": [measure(count, SELECTIVITY, at_least, STRING_RANGES) for count in counts],
        "matches_held": {
            "from": few,
            "to": many,
            "matches_per_event": [base["matches_per_event"], held["matches_per_event"]],
            "cost_growth_one_by_one": base["events_per_s_one_by_one"] / held["events_per_s_one_by_one"],
            "cost_growth_in_batches": base["events_per_s_in_batches"] / held["events_per_s_in_batches"],
            "events_per_s_one_by_one": held["events_per_s_one_by_one"],
            "events_per_s_in_batches": held["events_per_s_in_batches"],
            "ratio_one_by_one": held["ratio_one_by_one"],
        },
        "memory": memory(5_000 if quick else 40_000),
        "changes": changes(5_000 if quick else 100_000),
    }


def show(results: dict[str, Any]) -> None:
    print(
        f"{'filters':>8} {'matches':>8} {'one/s':>9} {'batch/s':>9} {'brute/s':>9} {'ratio':>7} {'batched':>8}", end=""
    )
    print(f" {'parse/s':>8} {'add/s':>8} {'remove/s':>8}")
    for row in results["matching"] + results["string_ranges"]:
        print(
            f"{row['filters']:>8,} {row['matches_per_event']:>8.1f} {row['events_per_s_one_by_one']:>9,.0f}"
            f" {row['events_per_s_in_batches']:>9,.0f} {row['events_per_s_brute_force']:>9,.1f}"
            f" {row['ratio_one_by_one']:>6.0f}x {row['ratio_in_batches']:>7.0f}x"
            f" {row['parsed_per_s']:>8,.0f} {row['added_per_s']:>8,.0f} {row['removed_per_s']:>8,.0f}"
        )
    held, size = results["matches_held"], results["memory"]
    low, high = held["matches_per_event"]
    print(
        f"matches held at {low:.1f} and {high:.1f} from {held['from']:,} to {held['to']:,} filters: cost grows"
        f" {held['cost_growth_one_by_one']:.1f}-fold one by one, {held['cost_growth_in_batches']:.1f}-fold in batches,"
        f" to {held['events_per_s_one_by_one']:,.0f} and {held['events_per_s_in_batches']:,.0f} events/s"
    )
    print(
        f"memory for each of {size['filters']:,} filters: {size['bytes_parsed']:,.0f} bytes parsed,"
        f" {size['bytes_indexed']:,.0f} more in the index"
    )
    live = results["changes"]
    print(
        f"coming and going among {live['filters']:,} filters: {live['changes_per_s']:,.0f} changes/s, the longest took"
        f" {live['longest_ms']:.1f} ms, {live['events_per_s_meanwhile']:,.0f} events/s one by one meanwhile,"
        f" {live['events_per_s_before']:,.0f} before"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="up to 10,000 filters, in a few seconds")
    arguments.add_argument("--json", action="store_true", help="the results as JSON")
    arguments.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments.add_argument("--load", type=int, metavar="COUNT", help="load so many filters, match a batch, and no more")
    arguments.add_argument("--strings", action="store_true", help="with --load: ranges of strings")
    chosen = arguments.parse_args()
    if chosen.load:
        print(json.dumps(load(chosen.load, STRING_RANGES if chosen.strings else MIXED), indent=2))
        return
    results = run(chosen.quick)
    if chosen.out:
        chosen.out.write_text(json.dumps(results))
    if chosen.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)


if __name__ == "__main__":
    main()
