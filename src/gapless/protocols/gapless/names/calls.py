"""What cannot be true of a client's calls about durable subscriptions, and what is too much: no honest client says it.

The keepers of names hold what is confirmed for as long as nobody confirms more, and members of a group rely on what
others say. So each list in a call has a bound, and each time.
"""

from typing import Any

from gapless.errors import CallError
from gapless.filters import parse
from gapless.printable import name_complaint
from gapless.protocols.gapless.client_messages import (
    HOLDS_MAX,
    LEASE_MAX_US,
    ClientConfirm,
    ClientHand,
    ClientMove,
    ClientNames,
    ClientOpen,
)
from gapless.protocols.gapless.clients.claims import NUMBER_MAX, check_name
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport

__all__ = ["check_call"]

REDELIVER_MAX_US = 86_400_000_000
"""A day, as for honest clients."""
CONFIRMED_MAX = 10_000
"""Publishers and ranges of numbers by which one confirmation tells what is confirmed beyond a position."""
CONFIRMED_TEXT_MAX = 1 << 18
"""Characters in the names of these publishers."""
REFUSED_MAX = 10_000
"""Numbers of events that are another's, in one message within a group."""


def check_call(client: str, message: Any) -> None:
    """Refuse a call that no honest client makes."""
    if isinstance(message, ClientOpen | ClientConfirm | ClientHand):
        check_name(client, message.subscription)
    complaint = "" if isinstance(message, ClientNames) else name_complaint("the name of a subscription", message.name)
    if complaint:
        raise CallError(f"{client!r} made a call that no client may make: {complaint}")
    if isinstance(message, ClientOpen | ClientMove):
        parse(message.filter)
    if isinstance(message, ClientOpen) and not 0 <= message.redeliver_us <= REDELIVER_MAX_US:
        raise CallError(
            f"{client!r} gives out again what was not confirmed for {message.redeliver_us} microseconds, but "
            f"{REDELIVER_MAX_US:,} is the limit"
        )
    if isinstance(message, ClientConfirm):
        counts = (message.generation, message.serial, message.position, message.latest, message.lease_us)
        ranges = [number for known in message.done.values() for pair in known for number in pair]
        numbers = (*counts, message.delivered, *message.got.values(), *ranges)
        if not all(0 <= number <= NUMBER_MAX for number in numbers):
            raise CallError(f"{client!r} confirms numbers that nobody can have counted to")
        if message.lease_us > LEASE_MAX_US:
            raise CallError(
                f"{client!r} wants to deal for {message.lease_us:,} microseconds without being heard, but "
                f"{LEASE_MAX_US:,} is the limit"
            )
        _check_confirmed(client, message)
    if isinstance(message, ClientHand):
        _check_word(client, message.word)
    if isinstance(message, ClientMove):
        _check_place(client, message)


def _check_place(client: str, call: ClientMove) -> None:
    if not -1 <= call.position <= NUMBER_MAX:
        raise CallError(f"{client!r} moves {call.name!r} to {call.position}: positions go from 0 to {NUMBER_MAX}")
    if call.after is not None:
        timestamp, publisher, number = call.after
        complaint = name_complaint("the name of a publisher", publisher)
        if complaint or timestamp != call.position + 1 or not 1 <= number <= NUMBER_MAX:
            raise CallError(
                f"{client!r} moves {call.name!r} after an event that there cannot be: {complaint or number}"
            )


def _check_confirmed(client: str, call: ClientConfirm) -> None:
    count = len(call.got) + sum(max(1, len(ranges)) for ranges in call.done.values())
    size = sum(map(len, call.got)) + sum(map(len, call.done))
    if count > CONFIRMED_MAX or size > CONFIRMED_TEXT_MAX:
        raise CallError(
            f"{client!r} confirms of {call.name!r}, beyond its position, {count:,} publishers and ranges with {size:,} "
            f"characters, but {CONFIRMED_MAX:,} and {CONFIRMED_TEXT_MAX:,} are the limits"
        )


def _check_word(client: str, word: GroupReport | GroupDeal) -> None:
    count = len(word.items if isinstance(word, GroupDeal) else word.holds or [])
    if count > HOLDS_MAX or len(word.refused) > REFUSED_MAX:
        raise CallError(
            f"{client!r} speaks of {count:,} events to another of its group, and of {len(word.refused):,} that are "
            f"another's, but {HOLDS_MAX:,} and {REFUSED_MAX:,} are the limits"
        )
