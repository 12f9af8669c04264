"""Same scenario, same seed: same trace, byte for byte, whatever Python's hash seed is."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gapless.protocol import ProtocolSpec
from gapless.registry import protocols
from gapless.simulator import generate, run_scenario

from .flooding import FLOODING

SEEDS = range(3)


def digest(spec: ProtocolSpec) -> str:
    total = hashlib.sha256()
    for seed in SEEDS:
        result = run_scenario(generate(seed, spec.name, "all"), with_messages=True, protocol=spec)
        total.update(msgspec.msgpack.encode(result))
    return total.hexdigest()


def digest_elsewhere(name: str, hash_seed: int) -> str:
    code = f"from tests.simulator.test_determinism import digest, spec_of; print(digest(spec_of({name!r})))"
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def spec_of(name: str) -> ProtocolSpec:
    return FLOODING if name == "flooding" else protocols()[name]


@pytest.mark.parametrize("name", ["flooding", "gapless"])
def test_two_processes_with_different_hash_seeds_agree(name: str) -> None:
    assert digest_elsewhere(name, 1) == digest_elsewhere(name, 2)


def test_two_runs_in_one_process_agree() -> None:
    assert digest(FLOODING) == digest(FLOODING)


def test_another_seed_is_another_run() -> None:
    scenario = generate(4, "flooding", "all")
    one, other = (run_scenario(scenario, seed=seed, protocol=FLOODING).trace for seed in (1, 2))
    assert one is not None
    assert other is not None
    assert [row.time_ms for row in one.history] != [row.time_ms for row in other.history]
