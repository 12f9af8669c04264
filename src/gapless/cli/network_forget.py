"""`gapless network forget`: stop waiting for a broker that will not return."""

from functools import partial
from pathlib import Path

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.operator_calls import PATIENCE_S, Answer, ask_all, silent_among
from gapless.cli.status import network_addresses
from gapless.cli.terminal import print_json, print_text
from gapless.client.arguments import check_named
from gapless.printable import NAME_MAX
from gapless.runtime import report_query
from gapless.runtime.access import Access
from gapless.runtime.event_loop import run
from gapless.runtime.probe import ask_to_forget

__all__ = ["forget_broker"]


def forget_broker(broker: str, url: str, file: Path | None, credentials: Path | None, *, as_json: bool) -> int:
    """Notify every reachable broker; return 0 if at least one accepts the declaration."""
    check_named("the name of a broker", broker, NAME_MAX)
    addresses, access = network_addresses(url, file, credentials)
    answers = run(_ask_all(addresses, broker, access))
    accepted = [name for name, answer in answers.items() if answer is not None and answer["forgotten"]]
    silent = silent_among(answers, addresses)
    reasons = dict.fromkeys(str(answer["reason"]) for answer in answers.values() if answer and answer["reason"])
    if as_json:
        print_json({"broker": broker, "accepted_by": accepted, "silent": silent, "reasons": list(reasons)})
    elif accepted:
        print_text(
            f"no broker waits for {broker} any longer (accepted by {', '.join(accepted)}). "
            f"Subscriptions and publishers are notified of events that only {broker} held. If it "
            "returns, it starts with empty state"
        )
    else:
        print_text(f"no broker forgets {broker}: {'; '.join(reasons)}")
    return VALID if accepted else INVALID


async def _ask_all(addresses: dict[str, str], broker: str, access: Access) -> dict[str, Answer]:
    """Query the broker itself first. If it answers, it is running, and no other broker is notified."""
    question = partial(ask_to_forget, broker=broker, timeout_s=PATIENCE_S, access=access)
    own = await ask_all({name: address for name, address in addresses.items() if name == broker}, question)
    if own.get(broker) is not None:
        return own
    if broker in addresses and await _is_paused(addresses[broker], access):
        reason = (
            f"{addresses[broker]} accepts connections, but {broker!r} does not answer. Its process may "
            "be paused and could resume later: end it first (kill -9)"
        )
        return {broker: {"forgotten": False, "reason": reason}}
    return own | await ask_all({name: address for name, address in addresses.items() if name != broker}, question)


async def _is_paused(address: str, access: Access) -> bool:
    """Return whether a process listens at this address but does not answer."""
    return (await report_query.ask_all({"": address}, access))[""].silence == "frozen"
