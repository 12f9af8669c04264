"""The recordings of clients of real brokers, one of which dies, are checked live and as a whole."""

from pathlib import Path

from gapless.checkers import check
from gapless.runtime.event_loop import run
from gapless.simulator import load_scenario
from tests.runtime.live_scenario import run_live

from .parts import LiveNetwork, lines_of

SCENARIO = Path(__file__).parents[2] / "runtime" / "scenarios" / "crash.toml"


def test_the_parts_of_a_real_network_are_judged_alike(tmp_path: Path) -> None:
    trace, _ = run(run_live(load_scenario(SCENARIO), tmp_path, speed=2.0, patient=True))
    live = LiveNetwork()
    live.feed([line for lines in lines_of(tmp_path).values() for line in lines])
    live.feed([])
    verdict, expected = live.verdict(quiesced=trace.runs[0].quiesced), check(trace)
    assert verdict == expected
    assert verdict.status == "valid"
