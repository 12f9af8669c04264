"""Random runs with every kind of fault on brokers and links: only wanted events are delivered, and each once.

Longer searches: `gapless sim search --protocol epidemic --faults crash,cut,suspicion,relink,loss,duplication`.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from benchmarks.epidemic_recovery import RECOVERIES

from gapless.protocol import Node
from gapless.registry import find_protocol
from gapless.simulator import search
from gapless_papers.protocols.epidemic.messages import EventId
from gapless_papers.protocols.epidemic.options import Recovery
from gapless_papers.protocols.epidemic.received import Received

EVERYTHING = "crash,cut,suspicion,relink,loss,duplication"


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_no_violation(recovery: Recovery, times: int) -> None:
    report = search("epidemic", 3 * times, faults=EVERYTHING, options={"recovery": recovery}, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown == 0


@pytest.mark.parametrize(
    "options",
    [
        {"remembered": 5},
        {"buffer": 3, "discard": "random"},
        {"lost": 1, "cached": "own"},
        {"at_once": True, "gossip_max_ms": 900},
    ],
)
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_no_violation_where_everything_is_scarce(options: dict[str, object], times: int) -> None:
    report = search("epidemic", 3 * times, 500, EVERYTHING, options, processes=1)
    assert report.finding is None, report.finding.repeat


class _Forgetful(Received):
    """A memory that remembers nothing."""

    def enter(self, event: EventId) -> bool:
        return True

    def pass_on(self, event: EventId) -> bool:
        return True


def test_without_a_memory_the_checkers_notice() -> None:
    def forgetful(make: Callable[[Any, Any], Node]) -> Callable[[Any, Any], Node]:
        def made(place: Any, options: Any) -> Node:
            node: Any = make(place, options)
            node._received = _Forgetful(1)
            return cast(Node, node)

        return made

    spec = find_protocol("epidemic")
    careless = msgspec.structs.replace(spec, broker=forgetful(spec.broker), client=forgetful(spec.client))
    report = search(careless, 10, faults="duplication", processes=1, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.symptom == "duplicate"


def test_it_is_registered() -> None:
    spec = find_protocol("epidemic")
    assert spec.guarantee == "best-effort"
    assert {"loss", "duplication", "relink"} <= spec.copes_with


PROGRAM = """
import hashlib
import msgspec
from gapless.simulator import generate, run_scenario

digest = hashlib.sha256()
for seed in range(3):
    for recovery in ("push", "combined-pull"):
        scenario = generate(seed, "epidemic", "crash,relink,loss,duplication", {"recovery": recovery})
        digest.update(msgspec.msgpack.encode(run_scenario(scenario, with_messages=True)))
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_two_processes_with_different_hash_seeds_agree() -> None:
    def digest(hash_seed: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout

    assert digest(1) == digest(4711)
