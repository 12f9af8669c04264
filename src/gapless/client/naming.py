"""Names of subscriptions, as people write them, and what they choose with them."""

from typing import get_args

from gapless.client.arguments import check_choice, check_text
from gapless.errors import CallError
from gapless.names import Confirmation, NamedSubscription
from gapless.protocol import ProtocolSpec

__all__ = ["check_name_of", "check_naming", "find_named"]

NAME_MAX = 200


def check_name_of(spec: ProtocolSpec, name: object) -> str:
    """The name, if it is one that a subscription can have."""
    text = check_text("the name of a subscription", name)
    if not spec.keeps_names:
        raise CallError(f"protocol {spec.name!r} keeps no named subscriptions; leave out the name")
    if not text.strip():
        raise CallError("the name of a subscription is empty; leave it out, or say by which name it goes on later")
    if len(text) > NAME_MAX:
        raise CallError(f"the name of a subscription has at most {NAME_MAX} characters, this one has {len(text):,}")
    return text


def check_naming(
    spec: ProtocolSpec, name: str | None, confirm: Confirmation, *, replace: bool, has_since: bool, ready: str
) -> str:
    """The name, empty if there is none, if what was chosen goes with it."""
    check_choice("confirm", confirm, get_args(Confirmation))
    if name is None:
        if confirm != "taken" or replace:
            what = "confirm='manual'" if confirm != "taken" else "replace=True"
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


def find_named(name: str, found: list[NamedSubscription]) -> NamedSubscription:
    """The one with this name."""
    for each in found:
        if each.name == name:
            return each
    known = ", ".join(repr(each.name) for each in found[:5]) or "there are none"
    raise CallError(f"there is no named subscription {name!r} ({known}{', …' if len(found) > 5 else ''})")
