"""`gapless client delete-events`: deletes from history the events that a client has published."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.operator_calls import PATIENCE_S, ask_all, silent_among
from gapless.cli.status import network_addresses, reports_of
from gapless.cli.terminal import print_json, print_text
from gapless.client.arguments import check_named
from gapless.printable import NAME_MAX
from gapless.runtime.access import Access
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_to_delete

__all__ = ["delete_events"]

LOOK_AGAIN_S = 0.2
WAIT_S = 30.0


def delete_events(publisher: str, url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Send the request to every broker, because each knows the time up to which it has admitted events. Return 0 if any
    broker had events of the client.
    """
    check_named("the name of a client", publisher, NAME_MAX)
    addresses, access = network_addresses(url, file, credentials)
    question = partial(ask_to_delete, publisher=publisher, timeout_s=PATIENCE_S, access=access)
    before = run(reports_of(addresses, access))
    answers = run(ask_all(addresses, question))
    silent = silent_among(answers, addresses)
    accepted = [name for name, answer in answers.items() if answer is not None and answer["deleted"]]
    reasons = dict.fromkeys(str(answer["reason"]) for answer in answers.values() if answer and answer["reason"])
    busy = run(_until_done({name: addresses[name] for name in accepted}, access))
    after = run(reports_of({name: addresses[name] for name in accepted}, access))
    counts = {name: _deleted(after[name]) - _deleted(before[name]) for name in accepted}
    if as_json:
        print_json({
            "client": publisher, "accepted_by": accepted, "silent": silent, "still_deleting": busy,
            "reasons": list(reasons), "deleted": counts,
        })  # fmt: skip
    elif not accepted:
        print_text("; ".join([f"nothing is deleted: {', '.join(reasons)}", *_silence(silent)]))
    else:
        if any(counts.values()):
            copies = ", ".join(f"{count:,} at {name}" for name, count in counts.items())
            print_text(f"deleted all events that {publisher} has published until now; copies of events: {copies}")
        elif not busy:
            print_text(f"no broker has events of {publisher}; events that it published earlier stay deleted")
        if busy:
            print_text(
                f"still deleting: {', '.join(busy)}; gapless status --json shows when they have finished (deleting)"
            )
        for sentence in _silence(silent):
            print_text(f"{sentence}: they delete the events when they return")
    return VALID if any(counts.values()) or busy else INVALID


def _silence(silent: list[str]) -> list[str]:
    return [f"no answer from {', '.join(silent)}"] if silent else []


def _deleted(report: dict[str, Any] | None) -> int:
    """Return how many events a broker has deleted since it started, from its report."""
    return 0 if report is None else int(report["overview"].get("deleted", 0))


async def _until_done(addresses: Mapping[str, str], access: Access) -> list[str]:
    """Wait until these brokers have deleted all events. Return the brokers that have not finished after `WAIT_S`."""
    busy = list(addresses)
    deadline = asyncio.get_running_loop().time() + WAIT_S
    while busy and asyncio.get_running_loop().time() < deadline:
        reports = await reports_of({name: addresses[name] for name in busy}, access)
        busy = [name for name, report in reports.items() if report is None or report["overview"]["deleting"]]
        if busy:
            await asyncio.sleep(LOOK_AGAIN_S)
    return busy
