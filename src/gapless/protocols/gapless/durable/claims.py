"""Validates clients' calls about durable subscriptions: every list, time and number in them is bounded.

The replicas of the register keep acknowledgements until the next ones replace them, and members of a group rely on
reports of others. The acknowledgements of a call affect only the subscription of the caller's own user.
"""

from typing import Any

from gapless.errors import CallError
from gapless.filters import FilterError, parse
from gapless.printable import name_complaint
from gapless.protocols.gapless.durable import client_messages as calls
from gapless.protocols.gapless.durable.messages import Report
from gapless.protocols.gapless.numbers import NAME_MAX, NUMBER_MAX, check_name, check_numbers

__all__ = ["check_durable_call"]

DAY_US = 86_400_000_000
"""The longest delay of a redelivery: one day, as enforced by regular clients, too."""
ACKED_MAX = 60_000
"""The maximum number of publishers and ranges in one acknowledgement beyond a position: a regular client has at most
100,000 unacknowledged deliveries, so at most every second one ends a range."""
ACKED_TEXT_MAX = 1 << 18
"""The maximum number of characters in the names of these publishers."""
REPORTED_MAX = 10_000
"""The maximum number of deliveries of each kind in one report."""


def check_durable_call(client: str, message: Any) -> None:
    """Reject a call that no regular client makes."""
    if isinstance(message, calls.ClientList):
        check_numbers(client, message.request)
        return
    _check_label(client, "the name of a durable subscription", message.name)
    if isinstance(message, calls.ClientMove):
        _check_label(client, "the name of a request", message.request, NAME_MAX)
    else:
        check_name(client, message.subscription)
    match message:
        case calls.ClientAttach():
            _check_attach(client, message)
        case calls.ClientAck():
            _check_ack(client, message)
        case calls.ClientMove():
            _check_filter(client, message.filter)
            _check_move(client, message)
        case calls.ClientGroupReport():
            _check_report(client, message.report)


def _check_label(client: str, what: str, text: str, *most: int) -> None:
    complaint = name_complaint(what, text, *most)
    if complaint:
        raise CallError(f"{client!r} made a call that no client may make: {complaint}")


def _check_filter(client: str, text: str) -> None:
    try:
        parse(text)
    except FilterError as error:
        raise CallError(f"{client!r} sent a filter that cannot be parsed: {error}") from None


def _check_attach(client: str, call: calls.ClientAttach) -> None:
    _check_filter(client, call.filter)
    _check_label(client, "the name of an attachment", call.line, 2 * NAME_MAX)
    check_numbers(client, call.max_deliveries)
    _check_time(client, call.redeliver_us)


def _check_time(client: str, time_us: int) -> None:
    if not 0 <= time_us <= DAY_US:
        raise CallError(f"{client!r} requests redelivery after {time_us} microseconds, but {DAY_US:,} is the limit")


def _check_ack(client: str, call: calls.ClientAck) -> None:
    known = call.progress
    ranges = [number for pairs in known.done.values() for pair in pairs for number in pair]
    returned = [number for each in known.outstanding for number in (each.seq, each.timestamp, each.deliveries)]
    check_numbers(
        client, call.generation, call.serial, known.position, known.latest, known.delivered, *known.got.values(),
        *ranges, *returned,
    )  # fmt: skip
    count = len(known.got) + sum(max(1, len(pairs)) for pairs in known.done.values())
    size = sum(map(len, (*known.got, *known.done)))
    if count > ACKED_MAX or size > ACKED_TEXT_MAX:
        raise CallError(
            f"{client!r} acknowledges of {call.name!r}, beyond its position, {count:,} publishers and ranges with "
            f"{size:,} characters, but {ACKED_MAX:,} and {ACKED_TEXT_MAX:,} are the limits"
        )


def _check_move(client: str, call: calls.ClientMove) -> None:
    if not -1 <= call.position <= NUMBER_MAX:
        raise CallError(f"{client!r} moves {call.name!r} to {call.position}: positions go from 0 to {NUMBER_MAX}")
    if call.after is not None:
        timestamp, publisher, number = call.after
        complaint = name_complaint("the name of a publisher", publisher)
        if complaint or timestamp != call.position + 1 or not 1 <= number <= NUMBER_MAX:
            raise CallError(f"{client!r} moves {call.name!r} after an event that cannot exist: {complaint or number}")


def _check_report(client: str, report: Report) -> None:
    _check_label(client, "the name of an attachment", report.line, 2 * NAME_MAX)
    held = report.holds or []
    numbers = [report.at, report.losses, *(item.seq for item in held), *report.acked, *report.extended]
    check_numbers(client, *numbers, *(each.number for each in report.returned))
    for each in report.returned:
        _check_time(client, each.delay_us)
    most = max(len(held), len(report.acked), len(report.returned), len(report.extended))
    if most > REPORTED_MAX:
        raise CallError(f"{client!r} reports {most:,} deliveries at a time, but {REPORTED_MAX:,} is the limit")
