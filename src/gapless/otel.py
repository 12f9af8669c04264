"""Spans of OpenTelemetry for a client: `gapless.connect(url, middleware=[gapless.otel.Tracing()])`.

- **publish**: a producer span around the publication, until it is confirmed. Its context travels in the attributes
  `traceparent` and `tracestate`, which a filter may name like any other.
- **process**: a consumer span whose parent is the publication's, wherever it was published. In a durable subscription
  it lasts from the delivery until the event is acknowledged or given back; else it marks the delivery. `with
  tracing.process(event):` makes it the current span of a block, so that what the block publishes and
  calls are its children.

Where spans go is the application's choice: this needs the interface of OpenTelemetry alone (`gapless[otel]`).
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from gapless.client.middleware import Middleware, Outcome, Outgoing
from gapless.events import Event

__all__ = ["Tracing"]

OPEN_MAX = 10_000
"""So many spans are open at a time: those of events that nobody acknowledges are ended, the oldest first."""


class Tracing(Middleware):
    """Makes spans of publications and deliveries. One object may serve several clients."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """By default, spans go to the provider of the process."""
        self._tracer = trace.get_tracer("gapless", tracer_provider=provider)
        self._open: OrderedDict[tuple[str, int], Span] = OrderedDict()

    def publish(self, outgoing: Outgoing) -> AbstractContextManager[Any]:
        """A producer span until the event is confirmed."""
        return self._publishing(outgoing)

    @contextmanager
    def _publishing(self, outgoing: Outgoing) -> Iterator[None]:
        with self._tracer.start_as_current_span("publish", kind=SpanKind.PRODUCER, attributes=_about(outgoing)):
            propagate.inject(outgoing.attributes)
            yield

    def deliver(self, event: Event, subscription: str, *, is_durable: bool) -> None:
        """A consumer span, in a durable subscription until the event is acknowledged."""
        about = {**_SYSTEM, "messaging.destination.name": subscription, "messaging.message.id": event.id}
        parent = _context_of(event)
        span = self._tracer.start_span("process", parent, kind=SpanKind.CONSUMER, attributes=about)
        if not is_durable:
            span.end()
            return
        self._end(self._open.pop((event.publisher, event.seq), None))
        self._open[event.publisher, event.seq] = span
        while len(self._open) > OPEN_MAX:
            self._end(self._open.popitem(last=False)[1])

    def ack(self, event: Event, outcome: Outcome) -> None:
        """The end of it."""
        span = self._open.pop((event.publisher, event.seq), None)
        if span is not None and outcome == "nack":
            span.set_status(Status(StatusCode.ERROR, "given back"))
        self._end(span)

    @contextmanager
    def process(self, event: Event) -> Iterator[Span]:
        """Make the span of an event the current one, in a block that processes the event, and end it there.

        Parameters:
            event: what was delivered.

        Example: `with tracing.process(order): await client.publish({"topic": "bill"})`
        """
        span = self._open.pop((event.publisher, event.seq), None)
        if span is None:
            span = self._tracer.start_span("process", _context_of(event), kind=SpanKind.CONSUMER)
        with trace.use_span(span, end_on_exit=True):
            yield span

    @staticmethod
    def _end(span: Span | None) -> None:
        if span is not None:
            span.end()


_SYSTEM = {"messaging.system": "gapless"}


def _about(outgoing: Outgoing) -> dict[str, Any]:
    return {**_SYSTEM, "messaging.message.body.size": len(outgoing.payload)}


def _context_of(event: Event) -> Context:
    carrier = {name: str(event.attributes[name]) for name in ("traceparent", "tracestate") if name in event.attributes}
    return propagate.extract(carrier)
