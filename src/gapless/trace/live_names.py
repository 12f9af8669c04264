"""Merges the durable subscriptions of a live network: what several clients received becomes one stream.

Each client records in its part when it attached to a durable subscription or joined a group, its
deliveries with their timestamps, and its acknowledgements. Together this is what the recorder of a
simulation knows, so it is replayed into a recorder. Its result (see `names` and `groups`) becomes
parts of clients named after the subscriptions.

A part is written to disk before anything in it is acknowledged, so a killed client has recorded
everything that others will not receive. If one of the clients is incomplete, so is the
subscription: its last deliveries are unknown.

Clocks of clients and brokers are compared: an event published less than `MARGIN_US` after a
position may be before it.
"""

import msgspec

from gapless.events import Event
from gapless.trace.groups import GROUP_CLIENT
from gapless.trace.names import NAME_CLIENT
from gapless.trace.part import Part
from gapless.trace.recorder import Recorder
from gapless.trace.rows import RunRow, SubscriptionRow, Trace

__all__ = ["enter_names"]

MARGIN_US = 50_000


def enter_names(run: RunRow, parts: list[Part], skew_ms: float) -> list[Part]:
    """Return the parts with one added for each durable subscription, and with the clients' own parts adjusted."""
    if not any(part.openings or part.members for part in parts):
        return parts
    slack_us = round(skew_ms * 1000)
    replayed = _replay(run, parts, slack_us)
    start_us = parts[0].start_us
    by_client = {part.client: part for part in parts}
    named = {name for part in parts for name in (*part.openings, *part.members)}
    for part in parts:
        part.cuts = {key: row for key, row in part.cuts.items() if key[0] not in named}
        part.skipped = [row for row in part.skipped if row.subscription_id not in named]
    owners: dict[str, Part] = {}
    for row in replayed.subscriptions:
        owner = by_client.get(row.client)
        if owner is None:
            owner = by_client[row.client] = Part(row.client, start_us, run, is_closed=_are_closed(row.client, parts))
        owners[row.subscription_id] = owner
        if row.subscription_id not in owner.subscriptions:
            owner.subscriptions[row.subscription_id] = _shifted(row, start_us)
    for cut in replayed.cuts:
        owners[cut.subscription_id].cuts[cut.subscription_id, cut.publisher] = cut
    for skipped in replayed.skipped:
        owners[skipped.subscription_id].skipped.append(skipped)
    for act in replayed.history:
        owner = by_client[act.client]
        time_ms = act.time_ms - start_us / 1000
        if act.step < len(owner.history):
            known = owner.history[act.step]
            if known.subscription_id != act.subscription_id:
                owner.history[act.step] = msgspec.structs.replace(known, subscription_id=act.subscription_id)
        else:
            owner.history.append(msgspec.structs.replace(act, time_ms=time_ms))
            owner.last_ms = max(owner.last_ms or 0.0, time_ms)
    return list(by_client.values())


def _replay(run: RunRow, parts: list[Part], slack_us: int) -> Trace:
    """Replay the actions of all clients into one recorder, ordered by wall-clock time."""
    recorder = Recorder(
        run=run.run, protocol=run.protocol, guarantee=run.guarantee, scenario=run.scenario, seed=run.seed,
        brokers=run.brokers, f=run.f, slack_us=slack_us,
    )  # fmt: skip
    for part in parts:
        for event in part.events:
            recorder.know(part.client, event.seq, part.us(event.published_ms) - slack_us - MARGIN_US)
        for row, stamp, redelivered in zip(part.history, part.stamps, part.again, strict=True):
            publisher, _, seq = row.event_id.rpartition(":")
            bare_event = Event(publisher, int(seq), {}, b"", stamp)
            recorder.act(part.client, bare_event, row.subscription_id, part.us(row.time_ms), redelivered=redelivered)
    for part in parts:
        for name, subscription in part.subscriptions.items():
            if name in part.openings or name in part.members:
                _replay_subscription(recorder, part, subscription)
    return recorder.finish(quiesced=run.quiesced)


def _replay_subscription(recorder: Recorder, part: Part, row: SubscriptionRow) -> None:
    name = row.subscription_id
    recorder.subscribe(part.client, name, row.filter, part.us(row.requested_ms), ready=row.ready)
    for opened in part.openings.get(name, ()):
        recorder.open_name(name, opened.name, opened.generation, opened.position, opened.got, opened.time_us)
    for joined in part.members.get(name, ()):
        recorder.join_group(name, joined.name, joined.position, joined.time_us)
    for ack in part.acks.get(name, ()):
        recorder.acknowledged(name, ack.count, ack.time_us, is_stored=ack.is_stored)
    for each in part.single_acks.get(name, ()):
        recorder.acknowledged_each(name, each.counts, each.time_us, is_stored=each.is_stored)
    for letter in part.letters.get(name, ()):
        recorder.dead_letter(name, letter.publisher, letter.seq)
    for revoked in part.revoked.get(name, ()):
        recorder.revoke(name, revoked.counts)
    for skipped in part.skipped_reports.get(name, ()):
        recorder.skip(name, skipped.lost, skipped.gap)
    if row.active_ms is not None:
        recorder.activate(name, part.us(row.active_ms))
    if name in part.ends:
        recorder.end(name, part.ends[name].last_seq, part.ends[name].time_us)


def _are_closed(client: str, parts: list[Part]) -> bool:
    """Return whether the trace contains all clients of a durable subscription from beginning to end."""
    name = client.removeprefix(NAME_CLIENT).removeprefix(GROUP_CLIENT)
    of_name = [part for part in parts if any(each.name == name for all_of_it in part.naming() for each in all_of_it)]
    return all(part.is_closed for part in of_name)


def _shifted(row: SubscriptionRow, start_us: int) -> SubscriptionRow:
    """Return the row with times relative to the start of the trace."""
    start_ms = start_us / 1000
    return msgspec.structs.replace(
        row, requested_ms=row.requested_ms - start_ms,
        active_ms=None if row.active_ms is None else row.active_ms - start_ms,
        ended_ms=None if row.ended_ms is None else row.ended_ms - start_ms,
    )  # fmt: skip
