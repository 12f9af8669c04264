"""The changes of a durable subscription's record. Each takes the record as it is, and makes the one that is to be.

A record has a *generation*, which grows whenever somebody opens, moves or ends it. A client that confirms tells its
generation, and only the client that opened the name last is heard. A record that was ended stays, so that its
generations only grow.

In a network with users, a name is its user's who opened it first. If a group shares it, nobody else can be in that
group: members rely on what other members say, above all on the events that one of them deals to the others.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from gapless.protocols.gapless.client_messages import (
    DELIVERED_AHEAD_US,
    LEASE_MAX_US,
    LEASE_US,
    ClientConfirm,
    ClientMove,
    ClientOpen,
)
from gapless.protocols.gapless.name_messages import NameRecord

__all__ = ["Change", "Refusal", "confirm", "move", "open_name"]


class Refusal(Exception):  # noqa: N818 - an answer, as good as any other
    """The change cannot be made; the sentence says why."""


Change: TypeAlias = Callable[[NameRecord | None], NameRecord]
"""From the record as it is to the one that is to be. It may be asked several times."""


def open_name(
    call: ClientOpen, client: str, broker: str, position: int, user_of: Callable[[str], str] = lambda client: "",
    *, newest: int = 0,
) -> Change:  # fmt: skip
    """A client begins to listen; a name that is not there begins at a position. The `newest` stamp is known here."""
    user = user_of(client)

    def change(record: NameRecord | None) -> NameRecord:
        generation = 0 if record is None else record.generation
        if record is None or record.is_over:
            if call.beyond >= 0:
                raise Refusal(f"the durable subscription {call.name!r} was ended")
            return NameRecord(
                call.name, call.filter, position, {}, generation + 1, 0, client, broker, is_shared=call.share,
                redeliver_us=call.redeliver_us, user=user,
            )  # fmt: skip
        owner = record.user or user_of(record.client)
        if record.is_shared and user and owner not in ("", user):
            raise Refusal(f"the group {call.name!r} belongs to user {owner!r}")
        if record.filter != call.filter and not call.replace:
            raise Refusal(
                f"the durable subscription {call.name!r} has another filter, {record.filter!r}; attach with that one, "
                "or with replace=True, or choose another name"
            )
        if record.is_shared != call.share and not call.replace:
            raise Refusal(_sharing(record))
        if _is_dealt(record, call, client):
            return record
        return msgspec.structs.replace(
            record, filter=call.filter, generation=generation + 1, serial=0, client=client, broker=broker,
            is_shared=call.share, redeliver_us=call.redeliver_us,
            lease_us=0 if record.client in ("", client) else min(max(record.lease_us, LEASE_US), LEASE_MAX_US),
            user=user if call.share and not record.is_shared else owner or user,
            delivered=_delivered(record, newest),
        )  # fmt: skip

    return change


def _delivered(record: NameRecord, newest: int) -> int:
    """No stamp of what was delivered is larger. A client that listens alone says so only when it leaves; until then it
    can have got all that there is."""
    is_known = record.is_shared or not record.client
    return record.delivered if is_known else max(record.delivered, newest + DELIVERED_AHEAD_US)


def _is_dealt(record: NameRecord, call: ClientOpen, client: str) -> bool:
    """Whether somebody else deals for the group, as far as the client knows: then it joins that one."""
    is_group = record.is_shared and call.share and record.filter == call.filter
    return is_group and record.client not in ("", client) and record.generation > call.beyond


def _sharing(record: NameRecord) -> str:
    name = record.name
    if record.is_shared:
        return f"a group shares the durable subscription {name!r}; attach with group=True, or with replace=True"
    return f"no group shares the durable subscription {name!r}; attach without group, or with replace=True"


def confirm(call: ClientConfirm, client: str, broker: str = "") -> Change:
    """The client that listens, at that broker, has confirmed more, or wants no more."""

    def change(record: NameRecord | None) -> NameRecord:
        if record is None:
            raise Refusal(f"the durable subscription {call.name!r} is not known any more: more brokers than f lost it")
        if record.generation != call.generation:
            raise Refusal(_taken(record))
        if call.serial <= record.serial:
            return record
        if record.client != client:
            raise Refusal(f"the durable subscription {call.name!r} is not open for {client!r}")
        who = "" if call.is_leaving else client
        return msgspec.structs.replace(
            record, position=call.position, got=call.got, latest=call.latest, serial=call.serial, client=who,
            done=call.done, broker=broker or record.broker, lease_us=0 if call.is_leaving else call.lease_us,
            delivered=call.delivered,
        )  # fmt: skip

    return change


def note_absence(generation: int, client: str) -> Change:
    """The session of the client that listens has expired. Should it come back, it may confirm as before.

    Who deals for a group stays: the others have a lease to go by.
    """

    def change(record: NameRecord | None) -> NameRecord:
        if record is None or (record.generation, record.client) != (generation, client) or record.is_shared:
            raise Refusal(f"{client!r} has not opened the durable subscription any more, or deals for a group")
        return msgspec.structs.replace(record, broker="")

    return change


def move(call: ClientMove, *, newest: int = 0) -> Change:
    """The name goes on after another position, or ends. Whoever listens to it is told that this is over."""

    def change(record: NameRecord | None) -> NameRecord:
        if record is None or record.is_over:
            raise Refusal(
                f"there is no durable subscription {call.name!r}; `gapless subscriptions` lists those there are"
            )
        if record.filter != call.filter:
            raise Refusal(f"the durable subscription {call.name!r} has got another filter meanwhile, {record.filter!r}")
        after = call.after
        return NameRecord(
            call.name, record.filter, max(0, call.position), {} if after is None else {after[1]: after[2]},
            record.generation + 1, is_over=call.position < 0, latest=0 if after is None else after[0],
            is_shared=record.is_shared, redeliver_us=record.redeliver_us, user=record.user,
            delivered=_delivered(record, newest), after=after,
        )  # fmt: skip

    return change


def _taken(record: NameRecord) -> str:
    if record.is_over:
        return f"the durable subscription {record.name!r} was ended"
    if not record.client:
        return f"the durable subscription {record.name!r} was moved, or opened by somebody who has left since"
    return f"{record.client!r} has opened the durable subscription {record.name!r}: one client at a time has it"
