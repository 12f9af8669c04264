"""The changes of a record. Each one takes the current record and returns the new one, or raises `Refusal`.

The **generation** grows whenever a client attaches, and when the subscription is moved or deleted. This fences the
previous owner: its writes under its own generation are rejected. The record of a deleted subscription is kept, so that
generations keep growing.

A shared subscription belongs to the user whose client attached first, because its members rely on each other's
acknowledgements.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from gapless.protocol import Owners
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientAttach, ClientMove
from gapless.protocols.gapless.durable.messages import DurableRecord, Progress
from gapless.protocols.gapless.durable.state import Change, NoteAbsence, WriteGroup
from gapless.protocols.gapless.identities import Incarnation

__all__ = ["DELIVERED_AHEAD_US", "Asker", "Refusal", "apply"]

DELIVERED_AHEAD_US = 10_000_000
"""The maximum difference by which another broker's clock, and so its timestamps, are assumed to be ahead of
this one's."""


class Refusal(Exception):  # noqa: N818 - an answer, as good as any other
    """The change is not possible; the message says why."""


@dataclass(frozen=True)
class Asker:
    """The broker that proposes a change, and its client, if any."""

    owner: Incarnation
    client: str
    position: int
    """The last final position that the broker knows. A new subscription starts there."""
    newest: int
    """An upper bound of all timestamps that the broker has seen."""
    owners: Owners
    live: frozenset[Incarnation] = frozenset()
    """The record's owner, as a set, if its incarnation is not excluded; otherwise an empty set."""


def apply(change: Change, record: DurableRecord | None, asker: Asker) -> DurableRecord:
    """Return the record after the change. Called again if the current record turns out to be a different one."""
    match change.command:
        case ClientAttach() as command:
            return _attach(command, record, asker)
        case ClientMove() as command:
            return _move(command, record, asker)
        case NoteAbsence() as command:
            if record is None or (record.generation, record.client) != (command.generation, command.client):
                raise Refusal(f"{command.client!r} is no longer attached")
            return replace(record, owner=None)
        case command:
            if record is None:
                name = command.name
                raise Refusal(
                    f"the durable subscription {name!r} is lost, because more than f registry replicas lost their data"
                )
            return _ack(command, record, asker) if isinstance(command, ClientAck) else _write(command, record, asker)


def _attach(command: ClientAttach, record: DurableRecord | None, asker: Asker) -> DurableRecord:
    user = asker.owners.user_of(asker.client)
    client = "" if command.is_shared else asker.client
    generation = 1 if record is None else record.generation + 1
    if record is None or record.is_over:
        if command.was_attached:
            raise Refusal(f"the durable subscription {command.name!r} was ended")
        return DurableRecord(
            command.name, command.filter, Progress(asker.position), generation, client=client, line=command.line,
            owner=asker.owner, user=user,
            is_shared=command.is_shared, redeliver_us=command.redeliver_us, max_deliveries=command.max_deliveries,
        )  # fmt: skip
    if record.is_shared and user and record.user not in ("", user):
        raise Refusal(f"the group {command.name!r} belongs to user {record.user!r}")
    if record.filter != command.filter and not command.replace:
        raise Refusal(
            f"the durable subscription {command.name!r} has another filter, {record.filter!r}; attach with that one, "
            "or with replace=True, or choose another name"
        )
    if record.is_shared != command.is_shared and not command.replace:
        how = "shared; attach with group=True" if record.is_shared else "not shared; attach without group"
        raise Refusal(f"the durable subscription {record.name!r} is {how}, or with replace=True")
    goes_on = record.is_shared == command.is_shared and record.filter == command.filter
    stays = goes_on and record.is_shared
    if stays and record.owner in asker.live:
        return record
    if client and (record.client, record.line) == (client, command.line):
        return replace(record, owner=asker.owner)
    progress = replace(
        record.progress, delivered=record.progress.delivered if stays else _delivered(record, asker.newest)
    )
    return replace(
        record, filter=command.filter, generation=generation, serial=0, client=client, line=command.line,
        owner=asker.owner,
        is_shared=command.is_shared, redeliver_us=command.redeliver_us, max_deliveries=command.max_deliveries,
        user=user if command.is_shared and not record.is_shared else record.user or user,
        progress=progress if goes_on else replace(progress, done={}, outstanding=[]),
    )  # fmt: skip


def _delivered(record: DurableRecord, newest: int) -> int:
    """Return an upper bound of the timestamps of delivered events. An attached exclusive client reports it only when it
    leaves."""
    known = record.progress
    if not record.client and not (record.is_shared and (known.outstanding or known.done)):
        return known.delivered
    return max(known.delivered, newest + DELIVERED_AHEAD_US)


def _taken(record: DurableRecord) -> str:
    if record.is_over:
        return f"the durable subscription {record.name!r} was ended"
    if not record.client:
        return f"the durable subscription {record.name!r} was moved, or another client attached and has left since"
    return (
        f"{record.client!r} has attached to the durable subscription {record.name!r}; one client at a time can attach"
    )


def _ack(command: ClientAck, record: DurableRecord, asker: Asker) -> DurableRecord:
    if record.generation != command.generation or record.is_shared:
        raise Refusal(_taken(record))
    if command.serial <= record.serial:
        return record
    if record.client != asker.client:
        raise Refusal(f"{asker.client!r} is not attached to the durable subscription {command.name!r}")
    return replace(
        record, progress=command.progress, serial=command.serial,
        client="" if command.is_leaving else asker.client, owner=None if command.is_leaving else asker.owner,
    )  # fmt: skip


def _move(command: ClientMove, record: DurableRecord | None, asker: Asker) -> DurableRecord:
    if record is None or record.is_over:
        raise Refusal(
            f"there is no durable subscription {command.name!r}; `gapless subscriptions` lists the existing ones"
        )
    if record.filter != command.filter:
        raise Refusal(f"the durable subscription {command.name!r} now has another filter, {record.filter!r}")
    after = command.after
    return DurableRecord(
        command.name, record.filter,
        Progress(
            max(0, command.position), {} if after is None else {after[1]: after[2]}, 0 if after is None else after[0],
            _delivered(record, asker.newest),
        ),
        record.generation + 1, is_over=command.position < 0, after=after, user=record.user, is_shared=record.is_shared,
        redeliver_us=record.redeliver_us, max_deliveries=record.max_deliveries,
    )  # fmt: skip


def _write(command: WriteGroup, record: DurableRecord, asker: Asker) -> DurableRecord:
    if record.generation != command.generation or record.owner != asker.owner:
        raise Refusal(_taken(record))
    return replace(record, progress=command.progress, owner=None if command.is_leaving else record.owner)
