"""`gapless client end`: stop waiting for a client that holds everybody up."""

from functools import partial
from pathlib import Path

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.operating import PATIENCE_S, ask_all, silent_among
from gapless.cli.status import network_addresses
from gapless.cli.terminal import print_json
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_to_end

__all__ = ["end_client"]


def end_client(client: str, url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Ask every broker, for only one of them knows the client; the exit code says whether one did."""
    addresses, access = network_addresses(url, file, credentials)
    question = partial(ask_to_end, client=client, timeout_s=PATIENCE_S, access=access)
    answers = run(ask_all(addresses, question))
    ended = [name for name, answer in answers.items() if answer is not None and answer["ended"]]
    silent = silent_among(answers, addresses)
    if as_json:
        print_json({"client": client, "ended_at": ended, "silent": silent})
    elif ended:
        print(f"{ended[0]} ended the session of {client}; what it subscribed to and advertised is gone")
    else:
        reasons = dict.fromkeys(answer["reason"] for answer in answers.values() if answer is not None)
        told = next(iter(reasons)) if len(reasons) == 1 else f"no broker has a session of {client!r}"
        unsure = f" (no answer from {', '.join(silent)})" if silent else ""
        print(f"{told}{unsure}; gapless status names the clients that are waited for")
    return VALID if ended else INVALID
