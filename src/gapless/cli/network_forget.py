"""`gapless network forget`: stop waiting for a broker that will not return."""

import asyncio
from pathlib import Path

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.status import network_addresses
from gapless.cli.terminal import print_json
from gapless.errors import ConnectError, WireError
from gapless.runtime.access import Access
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_to_forget

__all__ = ["forget_broker"]

PATIENCE_S = 5.0


def forget_broker(broker: str, url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Tell every broker that answers; the exit code says whether one heeds it."""
    addresses, access = network_addresses(url, file, credentials)
    answers = run(_tell_all(addresses, broker, access))
    told = [name for name, answer in answers.items() if answer is not None and answer["forgotten"]]
    silent = [name for name, answer in answers.items() if answer is None]
    if len(silent) == len(addresses):
        raise ConnectError(f"no broker could be reached at {', '.join(addresses.values())}; is the network up?")
    reasons = dict.fromkeys(str(answer["reason"]) for answer in answers.values() if answer and answer["reason"])
    if as_json:
        print_json({"broker": broker, "told": told, "silent": silent, "reasons": list(reasons)})
    elif told:
        print(
            f"{', '.join(told)} wait no more for {broker}; subscriptions and publishers are told what is lost with it. "
            "Should it return, it begins anew"
        )
    else:
        print(f"nobody forgets {broker}: {'; '.join(reasons)}")
    return VALID if told else INVALID


async def _tell_all(addresses: dict[str, str], broker: str, access: Access) -> dict[str, dict[str, object] | None]:
    """The broker itself first: if it answers, it is up, and nobody else is told."""
    answers: dict[str, dict[str, object] | None] = {}
    if broker in addresses:
        own = await _tell(addresses[broker], broker, access)
        if own is not None:
            return {broker: own}
        answers[broker] = None
    others = {name: address for name, address in addresses.items() if name != broker}
    found = await asyncio.gather(*(_tell(address, broker, access) for address in others.values()))
    return answers | dict(zip(others, found, strict=True))


async def _tell(address: str, broker: str, access: Access) -> dict[str, object] | None:
    try:
        return await ask_to_forget(address, broker, timeout_s=PATIENCE_S, access=access)
    except (OSError, TimeoutError, WireError):
        return None
