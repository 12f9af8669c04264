"""The `repr` of every public object describes it in one line."""

import inspect

import gapless
import gapless.client
from gapless import sync
from gapless.archive import Archive
from gapless.client.changes import ConnectionChange
from gapless.events import Event, PublishedEvent
from gapless.filters import FilterIndex, parse
from gapless.overlay import chain, ring
from gapless.runtime.event_loop import run
from gapless.trace import Trace
from tests.runtime.local import local

WRITTEN_BY_PROGRAMS = {"Codec", "Middleware"}


def test_every_public_type_has_one() -> None:
    for module in (gapless, gapless.client, sync):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found) and name not in WRITTEN_BY_PROGRAMS:
                assert found.__repr__ is not object.__repr__, f"{module.__name__}.{name}"


def test_events_show_what_fits_in_a_line() -> None:
    event = Event("ann", 3, {"topic": "trade", "n": 7}, b"bytes", 5)
    assert repr(event) == "<Event ann:3 {'n': 7, 'topic': 'trade'} b'bytes'>"
    assert repr(PublishedEvent("ann", 3, {})) == "<PublishedEvent ann:3 {}>"
    large = Event("ann", 3, {f"a{n}": "x" * 60_000 for n in range(100)}, bytes(60_000))
    assert len(repr(large)) < 2_000
    assert repr(large).endswith(r"\x00'…>")


async def _no_reply(request: Event) -> None: ...


def test_objects_of_a_client_show_their_state() -> None:
    async def main() -> None:
        async with local(1, f=0) as network, gapless.connect(network.url, name="ann") as ann:
            advertisement = await ann.advertise("n > 0")
            live = await ann.subscribe("n > 0")
            work = await ann.durable("work", "n > 0", ack="manual")
            changes = ann.connection_changes()
            await ann.publish({"n": 1})
            event = await anext(work)
            opening = ann.read("n > 0")
            assert repr(ann) == f"<Client {ann.name} of network local, connected to b0>"
            bob = await gapless.connect(network.url, name="bob")
            assert repr(bob) == f"<Client {bob.name} of network local, connecting>"
            await bob.close()
            assert repr(bob) == f"<Client {bob.name} of network local, closed>"
            assert repr(advertisement) == f"<Advertisement {advertisement.id} of 'n > 0'>"
            assert repr(live) == "<Subscription to 'n > 0', live, 1 waiting>"
            assert repr(work) == "<DurableSubscription 'work' to 'n > 0', live, 0 waiting>"
            assert repr(event) == f"<DurableEvent {ann.name}:1 {{'n': 1}}>"
            assert repr(opening) == "<client.read(…), not awaited>"
            assert repr(changes) == "<ConnectionChanges, 1 waiting>"
            assert repr(await anext(changes)) == repr(ConnectionChange("connected", "b0"))
            async with ann.answer("n = 1", _no_reply, group="g") as answering:
                assert repr(answering) == "<Answering 'n = 1', group 'g'>"
            assert repr(ann.admin) == "<Admin of network local>"
            assert repr(ann.archive("trades")) == "<ArchiveReader of 'trades'>"
            await opening

    run(main())


def test_other_types_show_what_they_are_of() -> None:
    index = FilterIndex[str]()
    index.add("a", parse("x = 1"))
    assert repr(index) == "<FilterIndex of 1 filters>"
    assert repr(Archive("trades")) == "Archive('trades')"
    assert repr(chain(3)) == "<Overlay of 3 brokers, b0–b1, b1–b2>"
    assert repr(chain(1)) == "<Overlay of 1 brokers, b0>"
    assert repr(ring(4)).startswith("<Graph of 4 brokers, b0–")
    assert repr(Trace([], [], [], [], [], [], [])) == (
        "<Trace with the rows 0 runs, 0 events, 0 subscriptions, 0 cuts, 0 history, 0 pasts, 0 messages, 0 cut_short, "
        "0 skipped>"
    )
