"""Middleware, and the OpenTelemetry spans that it creates."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

import gapless
from gapless.client import Outgoing
from gapless.client.middleware import Outcome
from gapless.errors import CallError
from gapless.otel import Tracing
from gapless.runtime.event_loop import run
from tests.runtime.local import local


class Noting(gapless.Middleware):
    def __init__(self) -> None:
        self.noted: list[str] = []

    @contextmanager
    def publish(self, outgoing: Outgoing) -> Iterator[None]:
        outgoing.attributes["by"] = "noting"
        try:
            yield
        except gapless.GaplessError:
            self.noted.append("refused")
            raise
        self.noted.append(f"published {outgoing.attributes['n']}")

    def deliver(self, event: gapless.Event, subscription: str, *, is_durable: bool) -> None:
        self.noted.append(f"{subscription} {event.integer('n')} {event.text('by')} {is_durable}")

    def ack(self, event: gapless.Event, outcome: Outcome) -> None:
        self.noted.append(f"{outcome} {event.integer('n')}")


def connected(story: Callable[[gapless.Client], Awaitable[None]], *middleware: gapless.Middleware) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(60),
            local(1, f=0, protocol="gapless") as network,
            gapless.connect(network.url, middleware=middleware) as client,
        ):
            await client.advertise("n > 0")
            await story(client)

    run(main())


def test_it_is_called_for_each_event_and_may_change_what_is_published() -> None:
    noting = Noting()

    async def story(client: gapless.Client) -> None:
        async with client.subscribe("n > 0") as plain, client.durable("work", "n > 0", ack="manual") as work:
            await client.publish({"n": 1})
            await client.publish_many([{"n": 2}, {"n": 3}])
            client.publish_nowait({"n": 4})
            await plain.take(1)
            await (await anext(work)).ack()
            await (await anext(work)).nack(delay_s=60)
            await anext(work)
            await work.ack()
            with pytest.raises(gapless.EventError, match="matches none of your advertisements"):
                await client.publish({"n": 0})
        async with client.durable("auto", "n > 0") as automatic:
            await client.publish({"n": 9})
            while (await anext(automatic)).integer("n") != 9:
                pass  # the span begins a moment before the event's timestamp

    connected(story, noting)
    assert noting.noted[:13] == [
        "published 1", "published 2", "published 3", "published 4", "n > 0 1 noting False", "work 1 noting True",
        "ack 1", "work 2 noting True", "nack 2", "work 3 noting True", "ack 3", "refused", "published 9",
    ]  # fmt: skip
    assert noting.noted[-2:] == ["auto 9 noting True", "ack 9"]


def test_one_that_fails_harms_no_delivery(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(gapless.Middleware):
        def deliver(self, event: gapless.Event, subscription: str, *, is_durable: bool) -> None:
            raise RuntimeError("oh")

    async def story(client: gapless.Client) -> None:
        async with client.subscribe("n > 0") as plain:
            await client.publish({"n": 1})
            assert (await anext(plain)).integer("n") == 1

    connected(story, Failing())
    assert "the middleware Failing failed on the delivery of" in caplog.text


def test_objects_that_are_no_middleware_are_refused() -> None:
    async def main() -> None:
        async with local(1, f=0, protocol="gapless") as network:
            with pytest.raises(CallError, match=r"a list of gapless\.Middleware, but this is str"):
                await gapless.connect(network.url, middleware="tracing")  # type: ignore[arg-type]
            with pytest.raises(CallError, match=r"a list of gapless\.Middleware, but this is Middleware"):
                await gapless.connect(network.url, middleware=gapless.Middleware())  # type: ignore[arg-type]

    run(main())


def test_spans_follow_an_event_from_its_publication_to_its_acknowledgement() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider)

    async def story(client: gapless.Client) -> None:
        async with client.durable("work", "n > 0", ack="manual") as work:
            await client.publish({"n": 1})
            first = await anext(work)
            await first.nack()
            again = await anext(work)
            with tracing.process(again):
                await client.publish({"n": 2})
            await again.ack()
            await (await anext(work)).ack()

    connected(story, tracing)
    spans = exporter.get_finished_spans()
    names = ["publish", "nack", "process", "publish", "process", "ack", "ack", "process"]
    assert [span.name for span in spans] == names
    one, nack, failed, two, done, _, ack, last = spans
    assert [parent_of(nack), parent_of(ack)] == [own(failed).span_id, own(last).span_id]
    assert {parent_of(failed), parent_of(done)} == {own(one).span_id}
    assert parent_of(two) == own(done).span_id, "effects are children of their cause"
    assert parent_of(last) == own(two).span_id
    assert len({own(span).trace_id for span in spans}) == 1
    assert [failed.status.is_ok, done.status.is_ok] == [False, True]
    assert dict(last.attributes or {})["messaging.destination.name"] == "work"


def test_the_span_of_a_delivery_links_to_the_spans_of_all_direct_causes() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def story(client: gapless.Client) -> None:
        async with client.subscribe("n > 0") as events:
            await client.publish({"n": 1})
            await client.publish({"n": 2})
            causes = [await anext(events), await anext(events)]
            await client.publish({"n": 3, **gapless.caused_by(*causes)})
            await anext(events)
            await client.publish({"n": 4, "causetraces": "no trace at all"})
            await anext(events)

    connected(story, Tracing(provider))
    spans = exporter.get_finished_spans()
    published = [own(span).span_id for span in spans if span.name == "publish"]
    links = [[link.context.span_id for link in span.links] for span in spans if span.name == "process"]
    assert links == [[], [], published[:2], []]


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def own(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context
