"""`gapless client end`: stop waiting for a client that holds everybody up."""

import asyncio
from pathlib import Path

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.status import network_addresses
from gapless.cli.terminal import print_json
from gapless.errors import ConnectError, WireError
from gapless.runtime.access import Access
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_to_end

__all__ = ["end_client"]

PATIENCE_S = 5.0


def end_client(client: str, url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Ask every broker, for only one of them knows the client; the exit code says whether one did."""
    addresses, access = network_addresses(url, file, credentials)
    answers = run(_ask_all(addresses, client, access))
    ended = [name for name, answer in answers.items() if answer is not None and answer["ended"]]
    silent = [name for name, answer in answers.items() if answer is None]
    if len(silent) == len(addresses):
        raise ConnectError(f"no broker could be reached at {', '.join(addresses.values())}; is the network up?")
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


async def _ask_all(addresses: dict[str, str], client: str, access: Access) -> dict[str, dict[str, object] | None]:
    found = await asyncio.gather(*(_ask(address, client, access) for address in addresses.values()))
    return dict(zip(addresses, found, strict=True))


async def _ask(address: str, client: str, access: Access) -> dict[str, object] | None:
    try:
        return await ask_to_end(address, client, timeout_s=PATIENCE_S, access=access)
    except (OSError, TimeoutError, WireError):
        return None
