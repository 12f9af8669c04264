"""Clients record their acknowledgements, so the audit of a live network knows which events must not be redelivered."""

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest

import gapless
from gapless.checkers import check
from gapless.errors import NoEventError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.trace import Trace, merge_parts
from gapless.trace.part import read_part
from gapless.trace.part_records import DeadLettered, EachAcknowledged, Revoked
from tests.checkers.live.parts import LiveNetwork, lines_of
from tests.runtime.local import Local, local

EVENTS = 30


async def work_through(network: Local, trace: Path, seed: int, *, group: bool) -> None:
    draw = random.Random(seed)
    async with (
        gapless.connect(network.at(f"b{seed}"), name=f"worker{seed}", trace=trace) as client,
        client.durable("work", "n > 0", ack="manual", group=group, max_deliveries=2) as work,
    ):
        taken: list[gapless.DurableEvent] = []
        for _ in range(EVENTS // 2):
            taken += await work.take(1, timeout_s=10)
            if len(taken) == 3:
                draw.shuffle(taken)
                await taken.pop().ack()
                await taken.pop().nack()


async def finish(network: Local, trace: Path, *, group: bool) -> None:
    """Run a client that acknowledges all events until no more arrive. It does not leave, because a group
    needs members."""
    client = await gapless.connect(network.url, name="rest", trace=trace)
    work = await client.durable("work", "n > 0", ack="manual", group=group, max_deliveries=2)
    with suppress(NoEventError):
        while True:
            for event in await work.take(timeout_s=2):
                await event.ack()
    await client.close(leave=False)


def recorded(trace: Path, kind: type) -> int:
    return sum(isinstance(record, kind) for path in (trace / "parts").iterdir() for record in read_part(path))


async def story(network: Local, trace: Path, *, group: bool) -> Trace:
    async with gapless.connect(network.at("b0"), name="ann", trace=trace) as ann:
        await ann.advertise("n > 0")
        async with ann.durable("work", "n > 0", ack="manual", group=group):
            pass
        await ann.publish_many([{"n": n + 1} for n in range(EVENTS)])
        await work_through(network, trace, 1, group=group)
        await work_through(network, trace, 2, group=group)
        await finish(network, trace, group=group)
    return merge_parts(trace, quiesced=True)


@pytest.mark.parametrize("group", [False, True])
def test_the_audit_knows_single_acknowledgements_and_dead_letters(group: bool, tmp_path: Path) -> None:
    async def main() -> Trace:
        async with asyncio.timeout(60), local(chain(3)) as network:
            return await story(network, tmp_path, group=group)

    trace = run(main())
    assert recorded(tmp_path, EachAcknowledged) > 4
    assert recorded(tmp_path, Revoked) > 2
    assert recorded(tmp_path, DeadLettered) > 0
    verdict = check(trace)
    assert verdict.status == "valid", verdict.anomalies
    whole = [row.event_id for row in trace.history if row.client.endswith(":work")]
    assert len(whole) == len(set(whole)) >= EVENTS / 2
    live = LiveNetwork()
    live.feed([line for lines in lines_of(tmp_path).values() for line in lines])
    assert live.verdict(quiesced=True).anomalies == ()
    assert sum(report.unjudged for report in live.reports.values()) == sum(
        row.kind == "deliver" and ":" not in row.client for row in trace.history
    )
