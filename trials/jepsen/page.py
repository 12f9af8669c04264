"""The report of some runs as one HTML page: the verdict, the faults on a time axis, operations, latencies."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from trials.jepsen.trial import Second, Trial

__all__ = ["page"]

WIDTH, HEIGHT, ROW = 960, 120, 16
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def page(trials: Sequence[Trial]) -> str:
    """Return the page."""
    rows = "".join(
        f"<tr><td>f = {trial.f}, seed {trial.seed}</td><td class={trial.status}>{trial.status}</td>"
        f"<td>{trial.seconds / 60:.1f}</td><td>{len(trial.strikes)}</td><td>{trial.published:,}</td>"
        f"<td>{trial.deliveries:,}</td><td>{trial.lost:,}</td><td>{trial.invented:,}</td></tr>"
        for trial in trials
    )
    heads = "".join(
        f"<th scope=col>{head}</th>"
        for head in ("run", "verdict", "minutes", "faults", "confirmed", "deliveries", "lost", "not published")
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Gapless under Jepsen's faults</title><style>{STYLE}</style><h1>Gapless under Jepsen's faults</h1>"
        "<p>Five brokers with their data on disk. Checked: every confirmed event is delivered exactly once to each "
        "subscription that was due it, in causal order, and is in the history of every broker; nothing is delivered "
        f"that nobody published.</p><table><tr>{heads}</tr>{rows}</table>" + "".join(map(_section, trials))
    )


def _section(trial: Trial) -> str:
    return (
        f"<h2>f = {trial.f}, seed {trial.seed}</h2>"
        f"<p><b class={trial.status}>{trial.status}</b>: {escape(trial.reason)}</p>"
        + _list("Anomalies", trial.anomalies)
        + _list("Errors of clients", trial.failures)
        + _list("Brokers that refused damaged data, and continued with an empty directory", trial.replaced)
        + (_plots(trial) if trial.timeline else "")
        + _list("Faults", [_fault(trial, number) for number in range(len(trial.strikes))])
    )


def _list(title: str, items: Sequence[str]) -> str:
    found = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<h3>{title}</h3><ol>{found}</ol>" if items else ""


def _fault(trial: Trial, number: int) -> str:
    strike = trial.strikes[number]
    begin = trial.timeline[0].time_ms if trial.timeline else strike.begun_ms
    return f"{(strike.begun_ms - begin) / 1000:.1f} s to {(strike.ended_ms - begin) / 1000:.1f} s: {strike.text}"


def _plots(trial: Trial) -> str:
    line = trial.timeline
    begin, end = line[0].time_ms, line[-1].time_ms + 1000

    def x(time_ms: float) -> float:
        return WIDTH * min(1.0, max(0.0, (time_ms - begin) / (end - begin)))

    bars = "".join(
        f"<rect x={x(each.begun_ms):.1f} y={number % 8 * ROW + 2} "
        f"width={max(2.0, x(each.ended_ms) - x(each.begun_ms)):.1f} height={ROW - 4}>"
        f"<title>{escape(each.text)}</title></rect>"
        for number, each in enumerate(trial.strikes)
    )
    faults = f"<svg viewBox='0 0 {WIDTH} {8 * ROW}' role=img aria-label='faults over time'>{bars}</svg>"
    counts = (("published", lambda s: s.published), ("delivered", lambda s: s.delivered))
    return (
        f"<h3>Timeline, {(end - begin) / 1000:.0f} s</h3>{faults}"
        + _plot("events per second", line, x, counts)
        + _plot("latency, ms", line, x, (("p50", lambda s: s.p50_ms), ("p99", lambda s: s.p99_ms)))
    )  # fmt: skip


def _plot(
    title: str, line: Sequence[Second], x: Callable[[float], float],
    curves: Sequence[tuple[str, Callable[[Second], float]]],
) -> str:  # fmt: skip
    top = max(1.0, *(value(second) for second in line for _, value in curves))
    drawn = ""
    for style, (name, value) in zip(("one", "two"), curves, strict=True):
        points = " ".join(f"{x(second.time_ms):.1f},{HEIGHT - 100 * value(second) / top:.1f}" for second in line)
        drawn += f"<polyline class={style} points='{points}'><title>{name}</title></polyline>"
    names = " and ".join(name for name, _ in curves)
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{title} over time'><line class=axis x1=0 x2={WIDTH} "
        f"y1={HEIGHT} y2={HEIGHT}></line>{drawn}<text x=4 y=12>{title}: {names}; at most {top:,.0f}</text></svg>"
    )
