"""`gapless client end`: ends the session of a client that blocks others."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.operator_calls import PATIENCE_S, Answer, ask_all, silent_among
from gapless.cli.status import network_addresses
from gapless.cli.terminal import print_json, print_text
from gapless.client.arguments import check_named
from gapless.printable import NAME_MAX
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_to_end

__all__ = ["end_client"]

SHOWN_MAX = 20
"""Maximum number of similar client names that are suggested."""


def end_client(client: str, url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Ask every broker to end the session, because only one of them has it. Return 0 if one ended it."""
    check_named("the name of a client", client, NAME_MAX)
    addresses, access = network_addresses(url, file, credentials)
    question = partial(ask_to_end, client=client, timeout_s=PATIENCE_S, access=access)
    answers = run(ask_all(addresses, question))
    ended = [name for name, answer in answers.items() if answer is not None and answer["ended"]]
    silent = silent_among(answers, addresses)
    similar = _similar(answers)
    if as_json:
        print_json({"client": client, "ended_at": ended, "silent": silent, "begin_so": similar})
    elif ended:
        print_text(f"{ended[0]} ended the session of {client} with its subscriptions and advertisements")
    else:
        reasons = dict.fromkeys(answer["reason"] for answer in answers.values() if answer is not None)
        reason = next(iter(reasons)) if len(reasons) == 1 else f"no broker has a session of {client!r}"
        unsure = f" (no answer from {', '.join(silent)})" if silent else ""
        print_text(f"{reason}{unsure}; gapless status lists the clients that brokers wait for")
        if similar:
            print_text(f"names that begin with it: {', '.join(similar)}")
    return VALID if ended else INVALID


def _similar(answers: Mapping[str, Answer]) -> list[str]:
    """Return the full names of clients that begin with the given name."""
    found: set[str] = set()
    for answer in answers.values():
        names = None if answer is None else answer.get("begin_so")
        found.update(map(str, names) if isinstance(names, list) else ())
    return sorted(found)[:SHOWN_MAX]
