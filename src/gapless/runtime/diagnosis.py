"""Diagnoses a network for `gapless doctor` and the console: lists its problems, with advice for each.

It combines the status reports of all brokers. A broker that does not answer explains why others
wait for it; a connection that only one end considers broken carries data in one direction only.
Each finding is reported once, causes before consequences. A command in the advice can be run as it
is: it names one broker, reaches the network like the doctor did, and is omitted where it would be
refused.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

import msgspec

from gapless.runtime.report_query import Answer

__all__ = ["ADVICE", "Finding", "diagnose"]

Answers = Mapping[str, Answer]

LONG_S = 5.0
"""The minimum duration of a suspicion that counts as a broken connection. Shorter ones are due to load."""
JUMP_S = 1.0
"""The minimum jump of a clock, in seconds, that is reported."""
LATE_MS = 500.0
"""The minimum lag of an event loop, in milliseconds, that is reported. Peers are suspected after a second or two."""

ADVICE = {
    "start": "start the brokers that it names, or correct their addresses in the network's file",
    "clock": "set the clock of its host by NTP, or those of the others if they are wrong",
    "recovery": "start or reconnect the named brokers: it continues when enough of them have answered",
    "handover": "check the named brokers: they have not reported their state",
    "return": "start or reconnect one of the named brokers; nothing is lost if one of them returns with its data",
    "isolated": "repair its network, or start the brokers that it does not reach; its clients are redirected to others",
    "suspected": "repair the connection between the two, or start the broker that does not send",
    "attach": "start or reconnect the brokers that it does not reach",
    "publish": "check the named brokers: they have not processed or replicated published events",
    "durable": "start or reconnect the named brokers: a durable subscription needs most of its 2f + 1 "
    "registry replicas",
    "history": "start or reconnect one of the named brokers: they hold the history that the client reads",
}
"""The advice for each kind of wait."""
FORGETTABLE = ("recovery", "return", "isolated", "suspected", "handover")
"""The kinds of waits that end when the named brokers are forgotten."""


class Finding(msgspec.Struct, frozen=True):
    """A problem of the network, and the advice for it."""

    what: str
    todo: str


def diagnose(answers: Answers, addresses: Mapping[str, str], options: str = "") -> list[Finding]:
    """Return the problems of the network, causes before consequences. `options` are added to commands in the advice."""
    found = [
        *_silent(answers, addresses),
        *_too_many(answers),
        *_starting(answers),
        *_clocks(answers),
        *_jumps(answers),
        *_one_sided(answers),
        *_waits(answers, options),
        *_overloaded(answers),
        *_held(answers),
        *_damaged(answers, addresses),
    ]
    return list({item.what: item for item in found}.values())


def _reports(answers: Answers) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, answer.report) for name, answer in answers.items() if answer.report is not None)


def _forgotten(answers: Answers) -> set[str]:
    """Return the brokers that an operator has declared lost."""
    return {name for _, report in _reports(answers) for name in report["overview"].get("forgotten", ())}


def _silent(answers: Answers, addresses: Mapping[str, str]) -> Iterator[Finding]:
    forgotten = _forgotten(answers)
    for name, answer in answers.items():
        if answer.report is not None:
            continue
        if name in forgotten:
            yield Finding(
                f"{name} does not answer, and no broker waits for it: an operator has declared that it will not return",
                f"start a replacement at {addresses[name]} with an empty data directory",
            )
            continue
        links = [other["links"][name] for _, other in _reports(answers) if name in other["links"]]
        reasons = [link["left_because"] for link in links if link["left_because"]]
        is_reachable = any(link["up"] and not link["suspected"] for link in links)
        yield _why_silent(
            name, addresses[name], answer, reasons, left=any(link["left"] for link in links), is_reachable=is_reachable
        )


def _why_silent(
    name: str, address: str, answer: Answer, reasons: list[str], *, left: bool, is_reachable: bool
) -> Finding:
    match answer.silence:
        case "turned-down":
            return Finding(
                f"{name} refuses to report its status: {answer.why}",
                f"remove the cause of the refusal; the broker is at {address}",
            )
        case "frozen":
            return Finding(
                f"{name} accepts connections and does not answer: its process is paused, or overloaded",
                f"check the process that listens on {address}: resume it if it is stopped (kill -CONT), "
                "restart it if it hangs, give it more processor time if it is busy",
            )
        case "nobody" | "unreachable" if reasons:
            return Finding(f"{name} has left: {reasons[0]}", f"follow that advice, then start {name} again")
        case "nobody" if left:
            return Finding(f"{name} has shut down gracefully", f"start {name} when it is to join again")
        case "nobody" if not is_reachable:
            return Finding(
                f"{name} is not running: nothing listens on {address}, and no broker hears it",
                "start it; if that fails, see its log; if it runs elsewhere, correct its address",
            )
        case "unreachable" if not is_reachable:
            return Finding(
                f"{name} cannot be reached ({answer.why}), and no broker hears it",
                f"start its host, or repair the network to {address}",
            )
    return Finding(
        f"{name} does not answer from here, but other brokers hear it", f"check the network from here to {address}"
    )


def _too_many(answers: Answers) -> Iterator[Finding]:
    f = next(report["f"] for _, report in _reports(answers))
    forgotten = _forgotten(answers)
    silent = [name for name, answer in answers.items() if answer.report is None and name not in forgotten]
    if len(silent) > f:
        yield Finding(
            f"{len(silent)} brokers do not answer, but the network is configured for {f} failures of adjacent brokers",
            "bring back as many as you can with their data, before any of them starts with an empty disk",
        )


def _starting(answers: Answers) -> Iterator[Finding]:
    for name, report in _reports(answers):
        if not report["ready"] and not any(wait["is_long"] for wait in report["waits"]):
            yield Finding(
                f"{name} has run for {report['uptime_s']:.0f} s and has not joined yet",
                "ask again in a moment; if that does not change, see its log",
            )


def _clocks(answers: Answers) -> Iterator[Finding]:
    """Yield clocks that differ by more than `max_clock_skew_ms` from those of most brokers that answer."""
    bound_s = next(report["clock"]["bound_s"] for _, report in _reports(answers))
    ahead = {name: answer.ahead_s for name, answer in answers.items() if answer.report is not None}
    middle = median(ahead.values())
    wrong = {
        name: seconds - middle for name, seconds in ahead.items()
        if abs(seconds - middle) > bound_s + answers[name].doubt_s
    }  # fmt: skip
    if 2 * len(wrong) >= len(ahead):
        shown = ", ".join(f"{name} {seconds - middle:+.1f} s" for name, seconds in ahead.items())
        yield Finding(
            f"the clocks of the brokers differ, and no majority agrees ({shown})", "synchronize every host by NTP"
        )
        return
    for name, seconds in wrong.items():
        side = "ahead of" if seconds > 0 else "behind"
        yield Finding(
            f"the clock of {name} is {abs(seconds):.1f} s {side} those of most other brokers",
            f"set the clock of its host: {name} computes ages and times such as since='10m' by it",
        )


def _jumps(answers: Answers) -> Iterator[Finding]:
    """Yield brokers whose host's clock was set while they ran."""
    for name, report in _reports(answers):
        seconds = report["clock"]["jump_s"]
        if abs(seconds) > JUMP_S:
            side = "forward" if seconds > 0 else "back"
            yield Finding(
                f"the clock of {name}'s host was set {side} by {abs(seconds):,.1f} s while {name} ran, and its "
                "timestamps do not follow",
                f"if the clock is right now, restart {name}; if not, correct it first",
            )


def _one_sided(answers: Answers) -> Iterator[Finding]:
    for name, report in _reports(answers):
        for peer, link in report["links"].items():
            other = answers[peer].report if peer in answers else None
            if other is None or not _is_broken(link) or name not in other["links"]:
                continue
            if _is_broken(other["links"][name]):
                pair = " and ".join(sorted((name, peer)))
                yield Finding(
                    f"{pair} do not hear each other, although both are up", "repair the connection between them"
                )
            elif not other["links"][name]["suspected"]:
                yield Finding(
                    f"{name} does not hear {peer}, but {peer} hears {name}",
                    f"the connection carries data in one direction only: check what blocks {peer} from reaching {name}",
                )


def _is_broken(link: Mapping[str, Any]) -> bool:
    return bool(link["suspected"] and link["silent_s"] >= LONG_S)


def _waits(answers: Answers, options: str) -> Iterator[Finding]:
    for name, report in _reports(answers):
        for wait in report["waits"]:
            if wait["is_long"]:
                todo = ADVICE.get(wait["kind"], "see docs/OPERATING.md")
                gone = [one for one in wait["names"] if one in answers and _may_be_forgotten(answers[one])]
                if wait["kind"] in FORGETTABLE and gone:
                    todo += f"; if {' and '.join(gone)} will never return: {_commands('network forget', gone, options)}"
                yield Finding(f"{name} {wait['text']}", todo)


def _may_be_forgotten(answer: Answer) -> bool:
    """Return whether `gapless network forget` accepts the broker. It refuses running and paused brokers."""
    return answer.report is None and answer.silence != "frozen"


def _commands(command: str, names: Iterable[str], options: str) -> str:
    """Return the shell commands for these names."""
    return " && ".join(f"gapless {command} {shlex.quote(name)}{options}" for name in names)


def _overloaded(answers: Answers) -> Iterator[Finding]:
    for name, report in _reports(answers):
        late_ms, longest_ms, what = (report["turns"][key] for key in ("late_ms", "longest_ms", "what"))
        if late_ms >= LATE_MS:
            is_busy = longest_ms >= late_ms / 2
            state = "is overloaded" if is_busy else "is overloaded or was paused"
            longest = f"; the longest turn took {longest_ms:,.0f} ms ({what})" if what else ""
            paused = "" if is_busy else "if it was not paused (kill -STOP, a suspended machine): "
            yield Finding(
                f"{name} {state}: its event loop ran {late_ms:,.0f} ms late within the last ten seconds{longest}",
                f"{paused}give {name} its own processor, move clients to other brokers, or limit users",
            )


def _held(answers: Answers) -> Iterator[Finding]:
    for name, report in _reports(answers):
        if report["paused"]:
            slow = max(report["links"], key=lambda peer: report["links"][peer]["queue"], default="its peers")
            yield Finding(
                f"{name} pauses its clients, because its send queue to {slow} is too long",
                f"check whether {slow} is overloaded, or the connection to it slow",
            )


def _damaged(answers: Answers, addresses: Mapping[str, str]) -> Iterator[Finding]:
    for name, report in _reports(answers):
        found = report["data"]["damaged"]
        if found:
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            where = shlex.quote(report["data"]["directory"])
            yield Finding(
                f"{name} has found damage in its data: {found[0]}{more}",
                f"when all other brokers are up: stop {name}, list all damage with gapless data check "
                f"{where}, move the directory away, and start it again; it gets its data from the others",
            )
