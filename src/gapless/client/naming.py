"""Names of subscriptions, as people write them, and what they choose with them."""

from typing import get_args

from gapless.client.arguments import check_choice, check_flag, check_named, check_text
from gapless.errors import CallError
from gapless.names import AckMode, DurableInfo
from gapless.printable import NAME_MAX
from gapless.protocol import ProtocolSpec

__all__ = ["REDELIVER_S", "check_name_of", "check_naming", "check_sharing", "find_named"]

REDELIVER_S = 30.0
"""In a group, unless its member says otherwise: what is not confirmed for so long is given to another."""
REDELIVER_MIN_S, REDELIVER_MAX_S = 0.1, 86_400.0


def check_name_of(spec: ProtocolSpec, name: object) -> str:
    """The name, if it is one that a subscription can have."""
    text = check_text("the name of a subscription", name)
    if not spec.keeps_names:
        raise CallError(f"protocol {spec.name!r} keeps no named subscriptions; leave out the name")
    if not text.strip():
        raise CallError("the name of a subscription is empty; leave it out, or say by which name it goes on later")
    return check_named("the name of a subscription", text, NAME_MAX)


def check_naming(
    spec: ProtocolSpec, name: str | None, confirm: AckMode, *, replace: bool, has_since: bool, ready: str
) -> str:
    """The name, empty if there is none, if what was chosen goes with it."""
    check_choice("confirm", confirm, get_args(AckMode))
    check_flag("replace", replace)
    if name is None:
        if confirm != "auto" or replace:
            what = "confirm='manual'" if confirm != "auto" else "replace=True"
            raise CallError(f"{what} is for named subscriptions: say name='…', too")
        return ""
    if has_since:
        raise CallError(
            f"the named subscription {name!r} goes on after what was confirmed; leave out since, or move it first with "
            "move_subscription"
        )
    if ready != "whole":
        raise CallError("a named subscription has no starting cut to wait for; leave out ready")
    return check_name_of(spec, name)


def check_sharing(name: str | None, redeliver_s: object, *, share: bool) -> None:
    """Whether a group can share it so."""
    check_flag("share", share)
    if share and name is None:
        raise CallError("share=True is for named subscriptions: say name='…', too")
    if not share and redeliver_s != REDELIVER_S:
        raise CallError("redeliver_s is for named subscriptions that a group shares: say share=True, too")
    if isinstance(redeliver_s, bool) or not isinstance(redeliver_s, int | float):
        raise CallError(f"redeliver_s is a number of seconds, and not of type {type(redeliver_s).__name__}")
    if not REDELIVER_MIN_S <= redeliver_s <= REDELIVER_MAX_S:
        raise CallError(f"redeliver_s goes from {REDELIVER_MIN_S:g} s to {REDELIVER_MAX_S:,.0f} s, not {redeliver_s:g}")


def find_named(name: str, found: list[DurableInfo]) -> DurableInfo:
    """The one with this name."""
    for each in found:
        if each.name == name:
            return each
    known = ", ".join(repr(each.name) for each in found[:5]) or "there are none"
    raise CallError(f"there is no named subscription {name!r} ({known}{', …' if len(found) > 5 else ''})")
