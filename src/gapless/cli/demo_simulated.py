"""`gapless demo --simulated`: shows the guarantee, a crash, the verdict, and a proof that the checker detects errors.

It runs in virtual time, without a network, and prints the same result each time.

The scenario is `demo.toml`, next to this file. It runs twice: unchanged, and with one rule of the protocol disabled. A
valid verdict is meaningful only because the same checker finds the error in the second run. If it does not, the verdict
of the demo is `unknown`.
"""

from importlib.resources import files
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gapless.checkers import Status
from gapless.cli.demo_facts import DemoRun, crash_of, journey_of, run_and_judge
from gapless.cli.demo_page import DemoPage, Promise, check_destinations, guarantee, missing, named
from gapless.cli.exit_codes import code_of
from gapless.cli.svg_picture import save_svg
from gapless.cli.terminal import output_console
from gapless.overlay import Overlay
from gapless.simulator import parse_scenario
from gapless.simulator.networks import overlay_of
from gapless.trace import write_trace

__all__ = ["REPAIR", "run_simulated_demo", "scenario_text"]

SHOWN_SUBSCRIPTIONS = ("invoices-due", "large-orders", "parcels-sent")
"""The subscriptions shown: one that is not covered, one covered at a neighbouring broker, and one covered at the same
broker."""
MOVING_CLIENT = "kiosk"
"""The client whose broker crashes."""
REPAIR = "union"


def scenario_text() -> str:
    """Return the text of the demo's scenario file."""
    return files("gapless.cli").joinpath("demo.toml").read_text(encoding="utf-8")


def run_simulated_demo(trace_directory: Path | None = None, svg: Path | None = None) -> int:
    """Run the simulated demo, print its results, and return the exit code of the verdict."""
    check_destinations(trace_directory, svg)
    console = output_console(record=svg is not None)
    scenario = parse_scenario(scenario_text())
    demo = _Demo(console, run_and_judge(scenario))
    demo.introduce()
    demo.subscribe()
    demo.kill_a_broker()
    without = run_and_judge(scenario, (REPAIR,))
    demo.switch_off(without)
    status = demo.conclude(without)
    if trace_directory is not None:
        write_trace([demo.run.trace], trace_directory)
        console.print(Text(f"trace  {trace_directory}", "dim"), soft_wrap=True)
    if svg is not None:
        save_svg(console, svg, "gapless demo")
    return code_of(status)


class _Demo:
    def __init__(self, console: Console, run: DemoRun) -> None:
        self._console = console
        self.run = run
        self._overlay: Overlay = overlay_of(run.scenario.network)
        self._page = DemoPage(console, self._overlay)
        self._broker_of = {client.name: client.broker for client in run.scenario.clients}
        self._crash = crash_of(run.scenario)

    def introduce(self) -> None:
        self._page.heading("A shop on 15 brokers")
        self._page.say(
            "Clients publish and subscribe; brokers forward events, 10 ms a hop. Each order causes an "
            "invoice, and each invoice a parcel, published by other clients."
        )
        self._page.draw(self._broker_of)
        self._page.say(
            "shop and kiosk publish orders. billing answers orders, shipping answers invoices. audit "
            "subscribes to everything, alert to large orders, board to parcels."
        )

    def subscribe(self) -> None:
        rows = {row.subscription_id: row for row in self.run.trace.subscriptions}
        shown = []
        for name in SHOWN_SUBSCRIPTIONS:
            latency = self.run.latencies[name]
            cut = ", ".join(f"{publisher}:{seq}" for publisher, seq in latency.cut.items())
            away = _hops(self._farthest(name))
            shown.append((latency.client, rows[name].filter, away, _hops(latency.hops), cut))
        self._page.starting_cuts(shown)

    def kill_a_broker(self) -> None:
        dead = self._crash.broker
        chief = self._overlay.within(dead, 1)[0]
        journey = journey_of(self.run, MOVING_CLIENT)
        lost = sum(journey.client in (anomaly.client, anomaly.publisher) for anomaly in self.run.verdict.anomalies)
        self._page.heading(f"2  Broker {dead} crashes, {self._crash.at_ms / 1000:g} s into the run")
        self._page.draw({**self._broker_of, MOVING_CLIENT: journey.new_broker}, dead, chief)
        self._page.say(
            f"The others agree on the events that {dead} had confirmed, exchange those that some of them lack, and "
            f"continue; {chief} takes over. {journey.client} moved to {journey.new_broker}, and received "
            f"nothing for {journey.silent_ms:.0f} ms: {journey.published_before} orders before, "
            f"{journey.published_after} after, {lost or 'none'} lost."
        )

    def switch_off(self, without: DemoRun) -> None:
        self._page.heading("3  The same run without a step of recovery")
        verdict = without.verdict
        if not verdict.anomalies:
            self._page.say("The checker found no anomaly. So its verdict proves nothing.")
            return
        self._page.say("If brokers do not exchange their events after a crash, the checker reports:")
        self._page.verdict(verdict.status, named(verdict.counts), [anomaly.message for anomaly in verdict.anomalies])

    def conclude(self, without: DemoRun) -> Status:
        self._page.promises(self._promises(without))
        verdict = self.run.verdict
        reason = verdict.reason
        if verdict.status == "valid":
            reason = f"{verdict.events:,} events, {verdict.deliveries:,} deliveries, one crashed broker, nothing wrong"
        return self._page.conclude(verdict.status, reason, without.verdict.status)

    def _promises(self, without: DemoRun) -> list[Promise]:
        verdict = self.run.verdict
        waits = {name: self.run.latencies[name].hops for name in SHOWN_SUBSCRIPTIONS}
        prompt = all(hops is not None and hops <= 2 * max(1, self._farthest(name)) for name, hops in waits.items())
        lost = missing(verdict.counts)
        lost_count = len(without.verdict.anomalies)
        return [
            ("subscribe() takes one round trip", f"{', '.join(map(str, waits.values()))} hops", prompt),
            *guarantee(verdict.counts, verdict.deliveries),
            ("one broker may crash (f = 1)", f"{self._crash.broker} died, {lost} lost", not lost),
            ("the checker detects a loss", f"{lost_count} anomalies in part 3", bool(lost_count)),
        ]

    def _farthest(self, subscription: str) -> int:
        """Return the number of hops to the farthest publisher in the subscription's starting cut."""
        latency = self.run.latencies[subscription]
        at = self._broker_of[latency.client]
        return max(self._overlay.distance(at, self._broker_of[publisher]) for publisher in latency.cut)


def _hops(hops: int | None) -> str:
    return "–" if hops is None else f"{hops} hops"
