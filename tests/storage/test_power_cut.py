"""After a power cut at any moment, the data that each sync mode guarantees is there and intact."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.power_cut import after_a_power_cut, calls_of_a_writer, can_watch

SEED = 3
CUTS = 15


def _cut(folder: Path, written: str, promised: str) -> None:
    if not can_watch():
        pytest.skip(
            "only strace shows what a process asks of its disk, and setup cannot bring it; where it is, this runs"
        )
    calls = calls_of_a_writer(folder, written, SEED)
    for cut in range(CUTS):
        after_a_power_cut(folder, calls, promised, SEED, cut)


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
def test_promises_survive_a_power_cut(sync: str, tmp_path: Path) -> None:
    _cut(tmp_path, sync, promised=sync)


def test_a_store_that_does_not_sync_loses_reported_commits(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"batches were reported, .* are there"):
        _cut(tmp_path, "never", promised="always")
