"""Typed values that can be acknowledged one by one: a field of `DurableEvent` receives the event."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest

import gapless
from gapless import sync
from gapless.client.reader import Reader
from gapless.errors import CallError
from gapless.overlay import chain
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from tests.runtime.local import QUICK, local


@dataclass
class Item:
    n: int
    event: gapless.DurableEvent


class Model(pydantic.BaseModel, arbitrary_types_allowed=True):
    n: int
    event: gapless.DurableEvent


@dataclass
class SyncItem:
    n: int
    event: sync.DurableEvent


@pytest.mark.parametrize("kind", [Item, Model])
def test_a_value_is_confirmed_by_its_event_and_the_following_are_repeated(kind: type[Item]) -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url) as client:
            await client.advertise("TRUE")
            items = await client.durable("work", "n > 0", ack="manual", type=kind)
            await client.publish_many([{"n": n} for n in (1, 2, 3)])
            first, second = await anext(items), await anext(items)
            assert (first.n, second.n, second.event.id) == (1, 2, f"{client.name}:2")
            await first.event.ack()
            await items.close()
            again = await client.durable("work", "n > 0", ack="manual", type=kind)
            assert [(await anext(again)).n for _ in range(2)] == [2, 3]

    run(main())


def test_without_an_event_loop_a_value_is_confirmed_by_its_event_too(tmp_path: Path) -> None:
    with Fleet(local_network(chain(1), f=0, runtime=QUICK), tmp_path) as fleet:
        fleet.start_all()
        with sync.connect(fleet.config.url, timeout_s=60) as client:
            client.advertise("TRUE")
            with client.durable("work", "n > 0", ack="manual", type=SyncItem) as items:
                client.publish_many([{"n": n} for n in (1, 2, 3)])
                first, second = next(items), next(items)
                assert (first.n, second.n) == (1, 2)
                first.event.ack()
            with client.durable("work", "n > 0", ack="manual", type=SyncItem) as again:
                assert [next(again).n, next(again).n] == [2, 3]


@pytest.mark.parametrize(
    ("kind", "confirmable", "complaint"),
    [
        (Item, None, r"field 'event' of Item is a gapless\.DurableEvent, .*; write Event\. Only durable"),
        (Model, None, r"field 'event' of Model is a gapless\.DurableEvent, .*; write Event\. Only durable"),
        (Item, sync.DurableEvent, r"write gapless\.sync\.DurableEvent, or Event"),
        (SyncItem, gapless.DurableEvent, r"is a gapless\.sync\.DurableEvent, .*write gapless\.Durable"),
    ],
)
def test_a_field_that_this_subscription_cannot_fill_is_refused_at_once(
    kind: Any, confirmable: Any, complaint: str
) -> None:
    with pytest.raises(CallError, match=complaint):
        Reader(kind, confirmable)
