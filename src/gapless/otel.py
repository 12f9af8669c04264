"""OpenTelemetry spans for a client: `gapless.connect(url, middleware=[gapless.otel.Tracing()])`.

- **publish**: a producer span around the publication, until it is confirmed. Its context travels in the attributes
  `traceparent` and `tracestate`, which filters can use like any other.
- **process**: a consumer span whose parent is the publication's span, wherever the event was published. In a durable
  subscription it lasts from the delivery until the event is acknowledged or negatively acknowledged; otherwise it marks
  the delivery. `with tracing.process(event):` makes it the current span of a block, so that publications and calls in
  the block are its children. It links to the publications of all declared direct causes (`gapless.caused_by`).
- **ack** or **nack**: a child span, when the application acknowledges the event or returns it.

The application configures the exporter: this module needs only the OpenTelemetry API (`gapless[otel]`).
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gapless.causes import CAUSE_TRACES, CAUSES_MAX
from gapless.client.middleware import Middleware, Outcome, Outgoing
from gapless.events import Event

__all__ = ["Tracing"]

OPEN_MAX = 10_000
"""The maximum number of open spans. Beyond it, spans of unacknowledged events are ended, the oldest first."""


class Tracing(Middleware):
    """Middleware that creates spans for publications and deliveries. Several clients can share one object."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """Create the middleware. By default, spans go to the provider of the process."""
        self._tracer = trace.get_tracer("gapless", tracer_provider=provider)
        self._open: OrderedDict[tuple[str, int], Span] = OrderedDict()

    def publish(self, outgoing: Outgoing) -> AbstractContextManager[Any]:
        """Start a producer span that lasts until the event is confirmed."""
        return self._publishing(outgoing)

    @contextmanager
    def _publishing(self, outgoing: Outgoing) -> Iterator[None]:
        with self._tracer.start_as_current_span("publish", kind=SpanKind.PRODUCER, attributes=_about(outgoing)):
            propagate.inject(outgoing.attributes)
            yield

    def deliver(self, event: Event, subscription: str, *, is_durable: bool) -> None:
        """Start a consumer span; in a durable subscription it lasts until the event is acknowledged."""
        about = {**_SYSTEM, "messaging.destination.name": subscription, "messaging.message.id": event.id}
        parent = _context_of(event)
        links = _links_of(event)
        span = self._tracer.start_span("process", parent, kind=SpanKind.CONSUMER, attributes=about, links=links)
        if not is_durable:
            span.end()
            return
        self._end(self._open.pop((event.publisher, event.seq), None))
        self._open[event.publisher, event.seq] = span
        while len(self._open) > OPEN_MAX:
            self._end(self._open.popitem(last=False)[1])

    def ack(self, event: Event, outcome: Outcome) -> None:
        """End the consumer span."""
        span = self._open.pop((event.publisher, event.seq), None)
        parent = _context_of(event) if span is None else trace.set_span_in_context(span)
        about = {**_SYSTEM, "messaging.message.id": event.id}
        self._tracer.start_span(outcome, parent, kind=SpanKind.CLIENT, attributes=about).end()
        if span is not None and outcome == "nack":
            span.set_status(Status(StatusCode.ERROR, "returned by nack()"))
        self._end(span)

    @contextmanager
    def process(self, event: Event) -> Iterator[Span]:
        """Make the span of an event current in a block that processes the event, and end it there.

        Parameters:
            event: the delivered event.

        Example: `with tracing.process(order): await client.publish({"topic": "bill"})`
        """
        span = self._open.pop((event.publisher, event.seq), None)
        if span is None:
            links = _links_of(event)
            span = self._tracer.start_span("process", _context_of(event), kind=SpanKind.CONSUMER, links=links)
        with trace.use_span(span, end_on_exit=True):
            yield span

    @staticmethod
    def _end(span: Span | None) -> None:
        if span is not None:
            span.end()


_FORMAT = TraceContextTextMapPropagator()
_SYSTEM = {"messaging.system": "gapless"}


def _about(outgoing: Outgoing) -> dict[str, Any]:
    return {**_SYSTEM, "messaging.message.body.size": len(outgoing.payload)}


def _context_of(event: Event) -> Context:
    carrier = {name: str(event.attributes[name]) for name in ("traceparent", "tracestate") if name in event.attributes}
    return propagate.extract(carrier)


def _links_of(event: Event) -> list[Link]:
    """Return links to the publications of the direct causes."""
    traces = event.attributes.get(CAUSE_TRACES)
    found = []
    for text in traces.split()[:CAUSES_MAX] if isinstance(traces, str) else ():
        cause = trace.get_current_span(_FORMAT.extract({"traceparent": text}, Context())).get_span_context()
        if cause.is_valid:
            found.append(Link(cause))
    return found
