"""Damaged files, power failures and pauses on five real brokers: a small run of `make jepsen`."""

from pathlib import Path

import pytest
from trials.jepsen.page import page
from trials.jepsen.trial import try_network

KINDS = ("flip", "power", "truncate", "power-all", "flip-live", "pause")


@pytest.mark.slow
@pytest.mark.parametrize("f", [1, 2])
def test_no_confirmed_event_is_lost_on_damaged_disks_or_after_power_failures(tmp_path: Path, f: int) -> None:
    trial = try_network(tmp_path, f=f, seed=1, seconds=0, kinds=KINDS, faults=len(KINDS), pauses_s=(1.0,))
    assert trial.status == "valid", f"{trial.reason} after {trial.strikes}"
    assert trial.lost == 0
    assert trial.deliveries > trial.published > 100
    assert len(trial.strikes) >= len(KINDS)
    (tmp_path / "page.html").write_text(page([trial]), encoding="utf-8")
    assert trial.strikes[0].text in (tmp_path / "page.html").read_text(encoding="utf-8")
