"""`gapless demo`: runs a real network, kills a broker, and audits the events that every client received.

Seven brokers run as processes, with link delays of 25 ms (`demo_network`). The clients' traces are merged and checked
on Spark. Next, three other brokers with disks are all killed at once (`demo_outage`). Then a simulated run with one
rule of the protocol disabled proves that the checker detects errors. If it does not, the verdict of the demo is
`unknown`.

The demo leaves no processes behind, and no files unless --trace asked for them.
"""

import logging
import os
import signal
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from gapless.checkers import Status, Verdict
from gapless.cli.demo_facts import run_and_judge
from gapless.cli.demo_network import ASKED, HOP_MS, MOVING, PLACES, VICTIM, F, LiveRun, demo_network, run_live
from gapless.cli.demo_outage import BlackoutRun, blackout_network, run_blackout
from gapless.cli.demo_page import DemoPage, Promise, check_destinations, guarantee, missing, named
from gapless.cli.demo_simulated import REPAIR, scenario_text
from gapless.cli.exit_codes import code_of
from gapless.cli.live_verdict import LiveVerdict, judge_live
from gapless.cli.svg_picture import save_svg
from gapless.cli.terminal import output_console, print_json, spinner
from gapless.overlay import Overlay
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet
from gapless.simulator import parse_scenario
from gapless.trace import Trace, merge_parts, write_trace

__all__ = ["run_demo"]

SLACK_HOPS = 2.0
"""The number of hops by which a measured latency may exceed the expected one, because clients, processes and a busy
machine add delay."""
HOPS = {"shipping": 8, "alert": 2, "board": 0}
"""The expected latency of each subscription shown, in hops there and back."""


def run_demo(trace_directory: Path | None = None, svg: Path | None = None, *, as_json: bool = False) -> int:
    """Run the demo, print its results, and return the exit code of the verdict."""
    check_destinations(trace_directory, svg)
    console = output_console(record=svg is not None)
    console.quiet = as_json
    with _termination(), _quiet_log(), tempfile.TemporaryDirectory(prefix="gapless-demo.") as folder:
        demo = _Demo(console, Path(folder))
        demo.introduce()
        demo.live()
        demo.subscribe()
        demo.kill_a_broker()
        demo.judge(trace_directory or Path(folder) / "trace")
        demo.kill_all_brokers()
        demo.switch_off()
        status = demo.conclude()
    if trace_directory is not None:
        console.print(Text(f"trace  {trace_directory}", "dim"), soft_wrap=True)
    if as_json:
        print_json(demo.document(status))
    if svg is not None:
        save_svg(console, svg, "gapless demo")
    return code_of(status)


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Suppress the logs of clients, because warnings about slow calls on a busy machine would interrupt the output.

    The checker still detects errors and reports them at the end.
    """
    logger, nowhere = logging.getLogger("gapless"), logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        yield
    finally:
        logger.removeHandler(nowhere)


@contextmanager
def _termination() -> Iterator[None]:
    """Treat SIGTERM like an interrupt, so that the demo cleans up.

    Shells make background processes ignore SIGINT; this restores the default.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Demo:
    def __init__(self, console: Console, folder: Path) -> None:
        self._folder = folder
        self._config = demo_network()
        self._overlay: Overlay = self._config.overlay
        self._page = DemoPage(console, self._overlay)
        self._console = console
        self._run: LiveRun
        self._blackout: BlackoutRun
        self._trace: Trace
        self._verdict: LiveVerdict
        self._without: Verdict
        self._waits: dict[str, float]

    # ---- the parts of the demo ----------------------------------------------------------------------------

    def introduce(self) -> None:
        self._page.heading("A shop on 7 brokers")
        self._page.say(
            f"Each broker is a process; a hop between two of them takes {HOP_MS:g} ms. Orders cause "
            "invoices, and invoices cause parcels, each published by another client."
        )
        self._page.draw(PLACES)
        self._page.say(
            "shop and kiosk publish orders. billing answers orders, shipping answers invoices. audit "
            "subscribes to everything, alert to large orders, board to parcels; guest keeps changing "
            "its subscription."
        )

    def live(self) -> None:
        """Run the network with the crash, and print its results."""
        with spinner("starting seven brokers") as announce:
            with Fleet(self._config, self._folder / "logs") as fleet:
                self._run = run(run_live(fleet, self._folder, announce))
                announce("stopping the network")
            self._trace = merge_parts(self._folder, quiesced=True)
        waits: dict[str, list[float]] = {}
        for row in self._trace.subscriptions:
            name = _short(row.client)
            if name in ASKED and row.filter == ASKED[name] and row.active_ms is not None:
                waits.setdefault(name, []).append(row.active_ms - row.requested_ms)
        self._waits = {name: statistics.median(waits[name]) for name in ASKED}

    def subscribe(self) -> None:
        rows = []
        for name, text in ASKED.items():
            cut = self._run.cuts[name]
            farthest = max(self._overlay.distance(PLACES[name], PLACES[_short(publisher)]) for publisher in cut)
            shown = ", ".join(f"{_short(publisher)}:{seq}" for publisher, seq in sorted(cut.items()))
            rows.append((name, text, f"{farthest} hops", f"{self._waits[name]:.0f} ms", shown))
        self._page.starting_cuts(rows)

    def kill_a_broker(self) -> None:
        live = self._run
        self._page.heading(f"2  Broker {VICTIM} is killed and returns")
        self._page.draw({**PLACES, MOVING: live.moved_to}, VICTIM, live.replacement)
        self._page.say(
            f"After {live.replaced_ms / 1000:.1f} s the others had agreed on the events that {VICTIM} had confirmed, "
            f"had exchanged those that some of them lacked, and continued; {live.replacement} took over. "
            f"{MOVING} moved to {live.moved_to}, and received nothing for {live.silent_ms / 1000:.1f} s: "
            f"{live.published_before} orders before, {live.published_after} after. {VICTIM} was restarted and rejoined "
            f"within {live.back_ms / 1000:.1f} s, under load, and {MOVING} returned to it."
        )

    def judge(self, place: Path) -> None:
        with spinner("looking for Spark, to check the trace") as announce:
            write_trace([self._trace], place)
            self._verdict = verdict = judge_live(
                place, is_small=True, announce=lambda judge: announce(f"{judge} checks what every client received")
            )
        self._page.heading(f"3  {verdict.judge[0].upper()}{verdict.judge[1:]}")
        self._page.say(
            f"Each client recorded what it published and received: {verdict.events:,} events, "
            f"{verdict.deliveries:,} deliveries, {verdict.subscriptions} subscriptions."
        )
        if verdict.without_spark:
            self._page.say(f"(Spark was not used: {verdict.without_spark}.)")
        self._page.verdict(verdict.status, named(verdict.counts) or verdict.reason, verdict.examples)

    def kill_all_brokers(self) -> None:
        with spinner("starting three brokers with disks") as announce:
            config = blackout_network(self._folder / "data")
            with Fleet(config, self._folder / "more logs") as fleet:
                self._blackout = seen = run(run_blackout(fleet, announce))
                announce("stopping the network")
        self._page.heading("4  All brokers are killed and return")
        self._page.say(
            f"Three other brokers keep their data on disk. {seen.confirmed:,} events were confirmed when all three "
            f"were killed at once; {seen.back_ms / 1000:.1f} s after their restart, the next ones were confirmed. The "
            f"subscriber received {seen.delivered:,} of {seen.published:,}, {seen.twice} twice, and a later one "
            f"read {seen.read:,} from history."
        )

    def switch_off(self) -> None:
        with spinner("the same in the simulator, with a step of recovery disabled"):
            self._without = without = run_and_judge(parse_scenario(scenario_text()), (REPAIR,)).verdict
        self._page.heading("5  Does the checker detect a loss?")
        if not without.anomalies:
            self._page.say("Without a step of recovery, the checker found no anomaly. So its verdict proves nothing.")
            return
        self._page.say("In the simulator, if brokers do not exchange their events after a crash, the checker reports:")
        self._page.verdict(without.status, named(without.counts), [anomaly.message for anomaly in without.anomalies])

    def conclude(self) -> Status:
        self._page.promises(self._promises())
        verdict = self._verdict
        reason = verdict.reason
        if verdict.status == "valid":
            reason = f"{verdict.events:,} events, {verdict.deliveries:,} deliveries, one broker killed, nothing wrong"
        status = verdict.status
        if not self._survived()[1]:
            status, reason = "invalid", "confirmed events did not survive a crash of all brokers"
        return self._page.conclude(status, reason, self._without.status)

    def _promises(self) -> list[Promise]:
        verdict = self._verdict
        confirmed = statistics.median(self._run.confirmed_ms)
        lost = missing(verdict.counts)
        lost_count = len(self._without.anomalies)
        return [
            ("subscribe(): a round trip to the farthest publisher", *self._latency("shipping")),
            ("if a neighbour's covers it, to where they meet", *self._latency("alert")),
            ("if one at the same broker covers it, no round trip", *self._latency("board")),
            (f"publish() returns when {F + 1} brokers hold it", f"{confirmed:.0f} ms (2 hops)", True),
            *guarantee(verdict.counts, verdict.deliveries),
            (f"{_number(F)} broker may crash (f = {F})", f"{VICTIM} was killed, {lost} lost", not lost),
            ("confirmed events survive a crash of all brokers", *self._survived()),
            ("the checker detects a loss", f"{lost_count} anomalies in part 5", bool(lost_count)),
        ]

    def _survived(self) -> tuple[str, bool]:
        seen = self._blackout
        gone = seen.published - seen.delivered
        return f"{gone} of {seen.confirmed:,} lost", not gone and not seen.twice and seen.read == seen.published

    def _latency(self, name: str) -> tuple[str, bool]:
        hops, waited = HOPS[name], self._waits[name]
        return f"{waited:.0f} ms ({hops} hops)", waited <= (hops + SLACK_HOPS) * HOP_MS

    def document(self, status: Status) -> dict[str, Any]:
        """Return all results as a JSON document."""
        promises = [
            {"promised": promised, "measured": measured, "kept": is_kept}
            for promised, measured, is_kept in self._promises()
        ]
        return {
            "status": status,
            "hop_ms": HOP_MS,
            "subscription_ms": {"uncovered": self._waits["shipping"], "covered_by_a_neighbour": self._waits["alert"],
                                "covered_at_the_same_broker": self._waits["board"]},
            "killed": VICTIM,
            "live": msgspec.to_builtins(self._run),
            "verdict": msgspec.to_builtins(self._verdict),
            "blackout": msgspec.to_builtins(self._blackout),
            "with_a_repair_switched_off": {"status": self._without.status, "counts": self._without.counts},
            "promises": promises,
        }  # fmt: skip


def _short(client: str) -> str:
    """Return the first part of a client's name: `shop` for `shop-1f2e3d4c`."""
    return client.rpartition("-")[0]


def _number(count: int) -> str:
    return {1: "one", 2: "two"}.get(count, str(count))
