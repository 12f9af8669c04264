"""A replica of the register, which stores one record for each durable subscription and changes it by majority.

The replicas are the electorate of the first broker: 2f + 1, of which at most f fail. A proposer (`proposals`) prepares
a ballot at f + 1 replicas, takes the record with the largest version that they have, and has the changed record
accepted by f + 1. Any two majorities share a replica, so changes are sequential, whichever broker proposes them. A
proposer that keeps its ballot makes the next change at once, under the next serial: if another broker had written in
between, a replica of the majority would reject it.

A restarted replica neither votes nor proposes until it has recovered (`pages`).

`store` is the only function that changes a replica's records.
"""

from collections import Counter

from msgspec.structs import replace

from gapless.protocols.gapless.durable.messages import AcceptRecord, PrepareRecord, StoredRecord, Version, Vote
from gapless.protocols.gapless.durable.state import NO_BALLOT, NO_VERSION
from gapless.protocols.gapless.identities import Ballot
from gapless.protocols.gapless.state import BrokerState

__all__ = [
    "counted", "incarnations_of", "is_replica", "majority", "merge", "receive_accept", "receive_prepare", "replicas",
    "store",
]  # fmt: skip

NAMES_MAX = 10_000
ENDED_MAX = 10_000


def replicas(s: BrokerState) -> tuple[str, ...]:
    first = s.topology.brokers[0]
    return (first, *s.topology.acceptors[first])


def is_replica(s: BrokerState) -> bool:
    return s.name in replicas(s)


def majority(s: BrokerState) -> int:
    """Return the size of a majority: more than half of the replicas, or all that may still return if those
    are fewer."""
    return max(1, s.needed(replicas(s), s.topology.quorum))


def incarnations_of(s: BrokerState) -> list[int]:
    """Return the latest known incarnations of the replicas."""
    return [s.number if name == s.name else s.status(name).number for name in replicas(s)]


def counted(s: BrokerState, said: dict[str, list[int]]) -> list[str]:
    """Return the replicas whose votes are valid. `said` has the incarnations that each voter knew; a vote of an
    excluded incarnation is void."""
    names = replicas(s)
    latest = [max(numbers) for numbers in zip(incarnations_of(s), *said.values(), strict=True)]
    return [name for name in said if said[name][names.index(name)] == latest[names.index(name)]]


# ---- voting --------------------------------------------------------------------------------------------------


def _held(s: BrokerState, name: str) -> StoredRecord:
    return s.durable.records.get(name) or StoredRecord(name, NO_BALLOT, NO_VERSION, None)


def receive_prepare(s: BrokerState, message: PrepareRecord) -> Vote | None:
    """Promise to reject smaller ballots, and return the record. Return None during recovery."""
    if not s.durable.has_recovered or not is_replica(s):
        return None
    held, refusal = _held(s, message.name), ""
    if message.ballot > held.promised:
        refusal = _no_room(s, held, message.user)
        if not refusal:
            user = held.user if message.name in s.durable.records else message.user
            held = replace(held, promised=Ballot(*message.ballot), user=user)
            store(s, held)
    return Vote(message.request, Version(message.ballot, 0), held, refusal, incarnations_of(s))


def receive_accept(s: BrokerState, message: AcceptRecord) -> Vote | None:
    """Store the record, unless a larger ballot was promised. Return None during recovery."""
    if not s.durable.has_recovered or not is_replica(s):
        return None
    held = _held(s, message.record.name)
    if message.version.ballot >= held.promised and message.version > held.version:
        held = StoredRecord(message.record.name, message.version.ballot, message.version, message.record)
        store(s, held)
    return Vote(message.request, message.version, held, "", incarnations_of(s))


def _no_room(s: BrokerState, held: StoredRecord, user: str) -> str:
    """Return why one more durable subscription would exceed a limit; empty if there is room, or it is not new."""
    if held.name in s.durable.records and not _is_over(held):
        return ""
    users = [_user_of(each) for each in s.durable.records.values() if not _is_over(each)]
    if len(users) >= NAMES_MAX:
        return f"there are {NAMES_MAX:,} durable subscriptions, which is the limit of the network; end some of them"
    most = s.owners.names_max(user) if user else 0
    if most and users.count(user) >= most:
        return (
            f"user {user!r} has {most:,} durable subscriptions, which is the limit; end one of them, or ask an "
            "operator to raise `names` in the users file"
        )
    return ""


# ---- stored records ------------------------------------------------------------------------------------------


def store(s: BrokerState, held: StoredRecord) -> None:
    d = s.durable
    d.records[held.name] = held
    s.disk.changed_records.add(held.name)
    if not _is_over(held):
        d.ended.pop(held.name, None)
    else:
        d.ended.setdefault(held.name, _user_of(held))
        if len(d.ended) > ENDED_MAX:
            _forget_ended(s)


def _is_over(held: StoredRecord) -> bool:
    return held.record is not None and held.record.is_over


def _user_of(held: StoredRecord) -> str:
    return held.user if held.record is None else held.record.user


def _forget_ended(s: BrokerState) -> None:
    """Forget the oldest deleted record of the user with the most, but none to which a client is attaching."""
    d = s.durable
    (most, _), *_ = Counter(d.ended.values()).most_common(1)
    for name, user in d.ended.items():
        if user == most and d.records[name].promised == d.records[name].version.ballot:
            del d.records[name], d.ended[name]
            s.disk.changed_records.add(name)
            return


def merge(s: BrokerState, other: StoredRecord) -> None:
    """Merge the promises and accepted records of another replica, during recovery."""
    own = _held(s, other.name)
    newer = other if other.version > own.version else own
    merged = replace(newer, promised=max(own.promised, other.promised))
    if merged != own:
        store(s, merged)
