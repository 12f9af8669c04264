"""Same scenario, same seed: same trace, byte for byte, whatever Python's hash seed is."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib, sys
import msgspec
from gapless.simulator import generate, run_scenario

digest = hashlib.sha256()
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    result = run_scenario(generate(seed, "gapless", "all"), with_messages=True)
    assert result.trace.messages
    digest.update(msgspec.msgpack.encode(result))
print(digest.hexdigest())
"""


def digest(first: int, last: int, hash_seed: int) -> str:
    """Of everything that these runs leave behind, every message included, in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", PROGRAM, str(first), str(last)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("first", [0, 100])
def test_two_processes_with_different_hash_seeds_agree(first: int) -> None:
    assert digest(first, first + 20, 1) == digest(first, first + 20, 4711)


def test_other_seeds_give_other_runs() -> None:
    assert digest(0, 1, 1) != digest(1, 2, 1)
