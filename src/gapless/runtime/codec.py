"""Batches of a protocol's messages as bytes, and back.

A message is a tagged array-like struct, so a batch is an array of arrays: `[["Wave", 7, 5], ["Ack", 0, 0, 64], …]`.
One call encodes a batch and one decodes it, and checks every type on the way: what does not fit the protocol's
messages never reaches a node. Payloads are opaque bytes, copied and not looked at.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import msgspec

from gapless.errors import ProtocolError, WireError
from gapless.events import Event, EventList, EventRun, bounds_of
from gapless.protocol import ProtocolSpec
from gapless.protocol.carrying import body_of, events_of, may_carry_events, publications_of
from gapless.runtime.object_count import has_more_entries, length_of
from gapless.runtime.wire import HEADER, MESSAGES, UNREADABLE

__all__ = ["ATTRIBUTE_BYTES", "ENTRIES_MAX", "SMALL", "Codec", "message_types"]

ATTRIBUTE_BYTES = 16
"""What an attribute counts beside its name and its text."""

ENTRIES_MAX = 200_000
"""Values in what a client sends at a time, names and numbers of maps included, so that no turn is long. A client that
comes back fills half of it with publications; it says of each subscription ten, and of each of its publishers four."""
SMALL = 512 * 1024
"""So few bytes are decoded as soon as they would be counted."""

PACKED_MIN = 8
"""So few events are encoded as fast as their bytes are looked up."""


class Codec:
    """Encodes what nodes of one protocol say; decodes what they hear, from brokers or from clients."""

    def __init__(
        self,
        spec: ProtocolSpec,
        frame_max: int,
        event_max: int | None = None,
        batch_max: int | None = None,
        run_max: int | None = None,
    ) -> None:
        types = message_types(spec)
        self._frame_max = frame_max
        self._split_at = frame_max
        """From so many bytes on, messages go in several frames, if there are several."""
        self._event_max = frame_max if event_max is None else event_max
        """The largest event that a client may send; any that fits into a frame, if nobody says."""
        self._batch_max = frame_max if batch_max is None else batch_max
        """How many messages a client may send in one frame; as many as fit into it, if nobody says."""
        self._run_max = frame_max if run_max is None else run_max
        """How large a run from a client may be, if each of its events is told for itself: brokers may have to do so."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._carrying = {kind for kind in types if may_carry_events(kind)}
        self._from_broker = _decoder(types)
        self._from_client = _decoder(spec.client_messages) if spec.client_messages else self._from_broker

    def frames(self, messages: Sequence[Any]) -> list[bytes]:
        """The messages as one frame, in two pieces ready to be written; as several, where one would be too large."""
        pieces: list[bytes] = []
        carrying = self._carrying
        packed = [self._packed(message) if message.__class__ in carrying else message for message in messages]
        self._add(packed, pieces)
        return pieces

    def _packed(self, message: Any) -> Any:
        """The message with the bytes of its events in their place, if these travel together, and to others, too."""
        body = body_of(message)
        if body is not None:
            packed = self._packed(body)
            return message if packed is body else msgspec.structs.replace(message, body=packed)
        events = events_of(message)
        if not isinstance(events, EventRun | EventList) or len(events) < PACKED_MIN:
            return message
        return msgspec.structs.replace(message, events=msgspec.Raw(events.encoded))

    def _add(self, batch: Sequence[Any], pieces: list[bytes]) -> None:
        body = self._encode(batch)
        if len(body) < self._frame_max and (len(body) <= self._split_at or len(batch) == 1):
            pieces += (HEADER.pack(len(body) + 1, MESSAGES), body)
        elif len(batch) > 1:
            half = len(batch) // 2
            self._add(batch[:half], pieces)
            self._add(batch[half:], pieces)
        else:
            kind = type(batch[0]).__name__
            raise WireError(
                f"a {kind} of {len(body):,} bytes does not fit into a frame of {self._frame_max:,}; "
                "raise frame_max in the network's file, or publish smaller events"
            )

    def decode(self, body: memoryview, *, is_client: bool) -> list[Any]:
        """The messages of a batch, or a `WireError` that can be told to the sender."""
        if is_client:
            self._check_effort(body)
        try:
            messages: list[Any] = (self._from_client if is_client else self._from_broker).decode(body)
        except UNREADABLE as error:
            raise WireError(f"a batch of messages is malformed: {error}") from None
        if is_client:
            self._check_runs(messages, len(body))
            if len(body) > self._event_max:
                _check_sizes(messages, self._event_max)
        return messages

    def _check_runs(self, messages: list[Any], size: int) -> None:
        """Attributes that are told once, and count for many events, must not make more of it than a frame holds."""
        for message in messages:
            events = events_of(message) if message.__class__ in self._carrying else None
            if isinstance(events, EventRun):
                bounds = bounds_of(events.alike)
                size += sum((end - begin - 1) * size_of(each, b"") for each, begin, end in bounds if end > begin + 1)
        if size > self._run_max:
            raise WireError(
                f"a batch of messages has {size:,} bytes if each event in it is told for itself, but "
                f"{self._run_max:,} is the limit"
            )

    def _check_effort(self, body: memoryview) -> None:
        """What a client sends is decoded in one go, so there must not be too much in it."""
        count = length_of(body)
        if count > self._batch_max:
            raise WireError(f"a batch of {count:,} messages is too large; {self._batch_max:,} is the limit")
        if len(body) > SMALL and has_more_entries(body, ENTRIES_MAX):
            raise WireError(
                f"a batch of messages has more than {ENTRIES_MAX:,} values in it, which is the limit; "
                "send less at a time, or hold fewer subscriptions"
            )


def _check_sizes(messages: list[Any], event_max: int) -> None:
    """A client looks at its events before it sends them; what comes larger is from one that does not."""
    for message in messages:
        for events in (events_of(message), publications_of(message)):
            for event in _largest(events) if isinstance(events, EventRun) else events:
                if isinstance(event, Event) and (size := size_of(event.attributes, event.payload)) > event_max:
                    raise WireError(f"the event {event.id} has {size:,} bytes, but {event_max:,} is the limit")


def _largest(run: EventRun) -> Iterator[Event]:
    """Of those that are alike, the one with the largest payload."""
    sizes = [len(payload) for payload in run.payloads]
    for _, begin, end in bounds_of(run.alike):
        yield run[max(range(begin, end), key=sizes.__getitem__)]


def size_of(attributes: Mapping[str, Any], payload: bytes) -> int:
    """The bytes of an event, as the bound on them counts."""
    texts = sum(len(value.encode()) for value in attributes.values() if isinstance(value, str))
    return len(payload) + ATTRIBUTE_BYTES * len(attributes) + sum(len(name.encode()) for name in attributes) + texts


def _decoder(types: tuple[type[msgspec.Struct], ...]) -> msgspec.msgpack.Decoder[list[Any]]:
    union: Any = Union[types]  # noqa: UP007 - made of a tuple
    return msgspec.msgpack.Decoder(list[union])


def message_types(spec: ProtocolSpec) -> tuple[type[msgspec.Struct], ...]:
    """What nodes of the protocol can say: its `messages`, or else all that its module of that name gives out."""
    types = spec.messages or _found(spec)
    if not types:
        raise ProtocolError(
            f"protocol {spec.name!r} does not say which messages it sends; put them into a module `messages` "
            "beside its broker, or name them in its specification"
        )
    for struct in types:
        config = struct.__struct_config__
        if config.tag is None or not config.array_like:
            raise ProtocolError(
                f"{struct.__name__} of protocol {spec.name!r} cannot travel: make it tag=True, array_like=True"
            )
    return types


def _found(spec: ProtocolSpec) -> tuple[type[msgspec.Struct], ...]:
    package = spec.broker.__module__.rpartition(".")[0]
    try:
        module = importlib.import_module(f"{package}.messages")
    except ModuleNotFoundError:
        return ()
    own = [name for name, value in vars(module).items() if _is_message(value) and value.__module__ == module.__name__]
    public = [name for name in sorted(getattr(module, "__all__", own)) if not name.startswith("_")]
    return tuple(value for name in public if _is_message(value := getattr(module, name)))


def _is_message(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__struct_config__.tag is not None
