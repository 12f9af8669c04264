"""Sweeps: finished runs are kept and not repeated, failures are isolated, and the order of workers does not matter."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.checkers import check_all
from gapless.errors import ExperimentError
from gapless.trace import read_trace
from gapless.trace.tables import TABLES
from gapless_papers.lab.conduct import conduct
from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.grid import cases_of
from gapless_papers.lab.process_pool import ProcessPool
from gapless_papers.lab.store import Store
from gapless_papers.lab.sweep import Found, Pool, SweepReport, Work, run_sweep

Tiny = Callable[..., Experiment]


class Here:
    """A pool that runs tasks in this process; a listed task kills its worker."""

    def __init__(self, deadly: str = "", *, backwards: bool = False) -> None:
        self._deadly = deadly
        self._order = -1 if backwards else 1

    def run(
        self, work: Work, tasks: Sequence[tuple[str, str]], schema: pa.Schema, on_done: Callable[[int], None]
    ) -> Found:
        for key, text in tasks[:: self._order]:
            on_done(1)
            dies = bool(self._deadly) and self._deadly in text
            yield key, None if dies else work(key, text)


class Unwanted(Here):
    """A pool whose use fails the test."""

    def run(self, *_: object) -> NoReturn:
        raise AssertionError("there was nothing to do")


def carried_out(experiment: Experiment, store: Store, pool: Pool) -> SweepReport:
    with store.open(experiment.name):
        return run_sweep(experiment, cases_of(experiment), store, pool)


def measured(experiment: Experiment) -> list[dict[str, Any]]:
    return [{"run": case.run, **metric._asdict()} for case in cases_of(experiment) for metric in conduct(case)[0]]


def test_a_sweep_measures_what_its_cases_give_and_does_it_once(tiny: Tiny, tmp_path: Path) -> None:
    experiment, store = tiny(), Store(tmp_path / "out")
    seen: list[int] = []
    with store.open(experiment.name):
        report = run_sweep(
            experiment, cases_of(experiment), store, Here(), on_progress=lambda now: seen.append(now.done)
        )
    assert (report.runs, report.found, report.failures) == (8, 0, ())
    assert seen == sorted(seen)
    assert seen[-1] == 8
    assert pq.read_table(tmp_path / "out" / "metrics").to_pylist() == measured(experiment)
    before = (tmp_path / "out" / "metrics" / "part-00000.parquet").read_bytes()
    again = carried_out(experiment, store, Unwanted())
    assert (again.runs, again.found) == (8, 8)
    assert (tmp_path / "out" / "metrics" / "part-00000.parquet").read_bytes() == before


def test_a_sweep_in_processes_of_this_machine(tiny: Tiny, tmp_path: Path) -> None:
    experiment = tiny()
    report = carried_out(experiment, Store(tmp_path / "out"), ProcessPool())
    assert (report.runs, report.failures) == (8, ())
    assert pq.read_table(tmp_path / "out" / "metrics").to_pylist() == measured(experiment)


def test_the_result_does_not_depend_on_the_order_of_the_runs(tiny: Tiny, tmp_path: Path) -> None:
    experiment = tiny(("seeds = 2", "seeds = 1\ntrace = true"))
    for name, pool in (("1", Here()), ("2", Here(backwards=True))):
        carried_out(experiment, Store(tmp_path / name), pool)
    one, other = (
        {
            file.relative_to(tmp_path / name): file.read_bytes()
            for part in ("metrics", "cases", "trace")
            for file in sorted((tmp_path / name / part).rglob("*.parquet"))
        }
        for name in ("1", "2")
    )
    assert len(one) == 2 + len(TABLES) * 4
    assert one == other


def test_traces_of_a_sweep_are_one_trace(tiny: Tiny, tmp_path: Path) -> None:
    experiment = tiny(("seeds = 2", "seeds = 1\ntrace = true"))
    carried_out(experiment, Store(tmp_path / "out"), Here())
    verdicts = check_all(read_trace(tmp_path / "out" / "trace"))
    assert sorted(verdict.run for verdict in verdicts) == sorted(case.run for case in cases_of(experiment))


def test_a_failing_run_is_reported_and_does_not_affect_the_others(
    sweep_of_first: Callable[[str], Experiment], tmp_path: Path
) -> None:
    experiment, store = sweep_of_first('"run.max_steps" = [10, 100000]'), Store(tmp_path / "out")
    report = carried_out(experiment, store, Here())
    (failure,) = report.failures
    assert "still busy after 10 steps" in failure.reason
    assert failure.repeat == f"gapless lab run {tmp_path / 'sweep.toml'} --only run.max_steps=10,seed=0"
    assert (tmp_path / "out" / "failures.json").exists()
    assert {row["run"] for row in pq.read_table(tmp_path / "out" / "metrics").to_pylist()} == {
        "sweep/run.max_steps=100000,seed=0"
    }
    again = carried_out(experiment, store, Here())
    assert (again.found, len(again.failures)) == (1, 1)


def test_a_run_that_kills_its_worker_is_reported_and_does_not_affect_the_others(tiny: Tiny, tmp_path: Path) -> None:
    experiment = tiny(("seeds = 2", "seeds = 1"), ("depth = [2, 3]", "depth = [2]"), ("where = { depth = 3 }", ""))
    report = carried_out(experiment, Store(tmp_path / "out"), Here(deadly="locaps"))
    (failure,) = report.failures
    assert failure.run == "tiny/protocol=locaps,depth=2,seed=0"
    assert failure.reason == "its worker process died, possibly because memory was exhausted"
    found = pq.read_table(tmp_path / "out" / "metrics").column("run").to_pylist()
    assert set(found) == {"tiny/protocol=gapless,depth=2,seed=0"}


def test_incomplete_results_are_not_taken_as_complete(tiny: Tiny, tmp_path: Path) -> None:
    experiment, store = tiny(("depth = [2, 3]", "depth = [2]"), ("where = { depth = 3 }", "")), Store(tmp_path / "out")
    carried_out(experiment, store, Here())
    key = cases_of(experiment)[0].key()
    (store.runs / key).rename(store.runs / f".{key}.partial")
    (store.runs / f".{key}.partial" / "metrics.parquet").write_bytes(b"PAR1")
    (store.directory / ".metrics.abc.partial").mkdir()
    assert not store.has(key)
    report = carried_out(experiment, store, Here())
    assert report.found == len(cases_of(experiment)) - 1
    assert [entry.name for entry in store.directory.rglob(".*")] == []


def test_a_directory_that_holds_something_else_is_left_alone(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(ExperimentError, match=r"something other than a sweep \(letter.txt\)"):
        Store(tmp_path / "mine").open("tiny").__enter__()
    with pytest.raises(ExperimentError, match="is a file"):
        Store(tmp_path / "mine" / "letter.txt").open("tiny").__enter__()


def test_a_directory_has_one_sweep_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    with store.open("another"), pytest.raises(ExperimentError, match="another sweep is running"):
        Store(tmp_path / "out").open("another").__enter__()
    with store.open("another"):
        pass
    with pytest.raises(ExperimentError, match="contains the runs of another"):
        Store(tmp_path / "out").open("tiny").__enter__()


def test_runs_without_requests_are_dropped(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    with store.open("tiny"):
        for key in ("new", "old"):
            store.keep(key, [{"metric": "m", "subject": "s", "value": 1.0}], with_trace=False)
        store.forget_others(["new"])
    assert [entry.name for entry in store.runs.iterdir()] == ["new"]
