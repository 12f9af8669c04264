"""Functions that check the arguments of durable subscriptions before anything is sent."""

from typing import get_args

from gapless.client.arguments import check_choice, check_count, check_flag, check_named, check_span, check_text
from gapless.errors import CallError
from gapless.names import AckMode, DurableInfo
from gapless.printable import NAME_MAX
from gapless.protocol import ProtocolSpec

__all__ = ["REDELIVER_S", "check_durable", "check_max_deliveries", "check_name_of", "check_redelivery", "find_durable"]

REDELIVER_S = 30.0
"""The default time after which a group redelivers an event that was not acknowledged."""
REDELIVER_MIN_S, REDELIVER_MAX_S = 0.1, 86_400.0


def check_name_of(spec: ProtocolSpec, name: object) -> str:
    """Return the name, or raise an error if it is invalid or the protocol has no durable subscriptions."""
    text = check_text("the name of a durable subscription", name)
    if not spec.keeps_names:
        raise CallError(f"protocol {spec.name!r} has no durable subscriptions; use subscribe(filter)")
    if not text.strip():
        raise CallError(
            "the name of a durable subscription is empty; choose a name under which clients can attach again"
        )
    return check_named("the name of a durable subscription", text, NAME_MAX)


def check_durable(
    spec: ProtocolSpec, name: object, ack: AckMode, redeliver_s: object, max_deliveries: object, *,
    group: bool, replace: bool,
) -> str:  # fmt: skip
    """Return the name of a durable subscription. Raise an error if it is invalid or the options contradict
    each other.
    """
    check_choice("ack", ack, get_args(AckMode))
    check_flag("replace", replace)
    check_flag("group", group)
    check_redelivery(redeliver_s, group=group)
    checked = check_name_of(spec, name)
    if max_deliveries is not None:
        check_max_deliveries(ack, max_deliveries)
    return checked


def check_max_deliveries(ack: AckMode, value: object) -> None:
    """Raise an error if the number of deliveries after which an event becomes a dead letter is invalid."""
    check_count("max_deliveries", value)
    if ack != "manual":
        raise CallError('max_deliveries requires ack="manual": ack="auto" acknowledges every event that was taken')


def check_redelivery(redeliver_s: object, *, group: bool) -> None:
    """Raise an error if the time after which a group redelivers unacknowledged events is invalid."""
    if not group and redeliver_s != REDELIVER_S:
        raise CallError("redeliver_s is for subscriptions that a group shares; add group=True")
    check_span("redeliver_s", redeliver_s, REDELIVER_MIN_S, REDELIVER_MAX_S)


def find_durable(name: str, found: list[DurableInfo]) -> DurableInfo:
    """Return the durable subscription with this name, or raise an error that lists the existing ones."""
    for each in found:
        if each.name == name:
            return each
    known = ", ".join(repr(each.name) for each in found[:5]) or "there are none"
    raise CallError(f"there is no durable subscription {name!r} ({known}{', …' if len(found) > 5 else ''})")
