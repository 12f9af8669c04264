"""A network of broker processes that are killed, paused, partitioned and restarted; the checker decides."""

from contextlib import closing
from pathlib import Path

from trials.chaos import Chaos, Load
from trials.cut_proxy import CutProxyProcess, proxied

from gapless.checkers import check
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.settings import RuntimeSettings
from gapless.trace import merge_parts

SETTINGS = RuntimeSettings(heartbeat_ms=100, suspect_ms=800, join_ms=2_000)


def test_brokers_die_freeze_and_lose_each_other_and_no_event_is_missed(tmp_path: Path) -> None:
    config = proxied(local_network(chain(5), f=1, runtime=SETTINGS))
    with Fleet(config, tmp_path / "logs") as fleet, closing(CutProxyProcess(fleet.file)) as proxy:
        fleet.start_all()
        chaos = Chaos(fleet, tmp_path / "parts", seed=7, load=Load(askers=2, rate=25, visitors=1), proxy=proxy)
        outcome = run(chaos.run(0, faults=3, kinds=("kill", "freeze", "cut"), pause_s=0.8))
    verdict = check(merge_parts(tmp_path / "parts", quiesced=True))
    assert outcome.failures == []
    assert verdict.status == "valid", f"{verdict.reason} after {outcome.faults}"
    assert verdict.deliveries > 300
    assert {fault.split()[0] for fault in outcome.faults} == {"kill", "freeze", "cut"}
    assert max(outcome.peak_kib.values()) < 200 * 1024
    assert set(outcome.longest_turns) == set(outcome.peak_kib), "each broker tells its longest turn"
