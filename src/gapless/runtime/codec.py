"""Encodes batches of protocol messages as bytes, and decodes them.

A message is a tagged array-like struct, so a batch is an array of arrays: `[["Wave", 7, 5], ["Ack",
0, 0, 64], …]`. One call encodes a batch and one decodes it and checks every type: a batch that does
not match the protocol's messages never reaches a node. Payloads are opaque bytes that are copied
without being examined.
"""

import importlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Union

import msgspec

from gapless.errors import ProtocolError, WireError
from gapless.event_runs import EventRun, TableError
from gapless.events import Event
from gapless.message_pack import has_more_entries, length_of
from gapless.protocol import ProtocolSpec
from gapless.protocol.carrying import events_of, may_carry_events
from gapless.runtime.wire import HEADER, MESSAGES, UNREADABLE

__all__ = ["ATTRIBUTE_BYTES", "ENTRIES_MAX", "SMALL", "Codec", "message_types"]

ATTRIBUTE_BYTES = 16
"""The assumed size of an attribute in bytes, without its name and its text."""

ENTRIES_MAX = 200_000
"""The maximum number of values in one batch from a client, including names and numbers in maps, so that decoding does
not take long. A client that reconnects fills half of it with publications. It sends ten values for each subscription,
and four for each of its publishers."""
SMALL = 512 * 1024
"""The size in bytes below which a batch is decoded without counting its values: counting would take as long."""


class Codec:
    """Encodes the messages of one protocol, and decodes batches from brokers and clients."""

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
        """The size in bytes above which a batch is split into several frames."""
        self._event_max = frame_max if event_max is None else event_max
        """The largest event that a client may send, in bytes; by default any event that fits into a frame."""
        self._batch_max = frame_max if batch_max is None else batch_max
        """The maximum number of messages in one frame from a client; by default as many as fit."""
        self._run_max = frame_max if run_max is None else run_max
        """The maximum size of a run from a client. The size is that of its events as separate messages, because brokers
        may have to split the run."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._carrying = _carrying(types)
        self._from_broker = _decoder(types)
        self._from_client = _decoder(spec.client_messages) if spec.client_messages else self._from_broker

    def frames(self, messages: Sequence[Any]) -> list[bytes]:
        """Return the messages as one frame in two parts ready to be written, or as several frames if one would be too
        large.
        """
        pieces: list[bytes] = []
        self._add(messages, pieces)
        return pieces

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
        """Return the messages of a batch. Raise a `WireError` with a message for the sender if it is malformed."""
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
        """Check that the runs in a batch can be decoded, and do not expand to more than a frame holds."""
        values = 0
        for message in messages:
            events = events_of(message) if message.__class__ in self._carrying else None
            if isinstance(events, EventRun):
                values += events.table.values
                if values > ENTRIES_MAX:
                    raise WireError(_too_many_values())
                try:
                    events.table.check()
                except TableError as error:
                    raise WireError(f"a batch of messages is malformed: {error}") from None
                repeated = size_of(events.table.shared, b"") + sum(len(name.encode()) for name in events.table.columns)
                size += (len(events) - 1) * repeated
        if size > self._run_max:
            raise WireError(
                f"a batch of messages has {size:,} bytes with its events expanded, but {self._run_max:,} is the limit"
            )

    def _check_effort(self, body: memoryview) -> None:
        """Check that a client's batch does not contain too many values, because it is decoded in one turn."""
        count = length_of(body)
        if count > self._batch_max:
            raise WireError(f"a batch of {count:,} messages is too large; {self._batch_max:,} is the limit")
        if len(body) > SMALL and has_more_entries(body, ENTRIES_MAX):
            raise WireError(_too_many_values())


def _too_many_values() -> str:
    return (
        f"a batch of messages has more than {ENTRIES_MAX:,} values, which is the limit; send less "
        "at a time, or hold fewer subscriptions"
    )


def _check_sizes(messages: list[Any], event_max: int) -> None:
    """Check that no event exceeds the maximum size. Client libraries check this before they send an event."""
    for message in messages:
        events = events_of(message)
        if isinstance(events, EventRun):
            sizes = zip(events.seqs, events.table.sizes(ATTRIBUTE_BYTES), strict=True)
            named = ((f"{events.publisher}:{seq}", size) for seq, size in sizes)
        else:
            named = ((each.id, size_of(each.attributes, each.payload)) for each in events if isinstance(each, Event))
        for name, size in named:
            if size > event_max:
                raise WireError(f"the event {name} has {size:,} bytes, but {event_max:,} is the limit")


def size_of(attributes: Mapping[str, Any], payload: bytes) -> int:
    """Return the size of an event in bytes, as limits count it."""
    texts = sum(len(value.encode()) for value in attributes.values() if isinstance(value, str))
    return len(payload) + ATTRIBUTE_BYTES * len(attributes) + sum(len(name.encode()) for name in attributes) + texts


@lru_cache
def _carrying(types: tuple[type[msgspec.Struct], ...]) -> frozenset[type[msgspec.Struct]]:
    """Return the message types that can contain events. All codecs of a process share this result, and the decoders."""
    return frozenset(kind for kind in types if may_carry_events(kind))


@lru_cache
def _decoder(types: tuple[type[msgspec.Struct], ...]) -> msgspec.msgpack.Decoder[list[Any]]:
    union: Any = Union[types]  # noqa: UP007 - made of a tuple
    return msgspec.msgpack.Decoder(list[union])


def message_types(spec: ProtocolSpec) -> tuple[type[msgspec.Struct], ...]:
    """Return the message types of the protocol: its `messages`, or all that its module `messages` exports."""
    types = spec.messages or _found(spec.broker.__module__.rpartition(".")[0])
    if not types:
        raise ProtocolError(
            f"protocol {spec.name!r} does not list the messages that it sends; define them in a module "
            "`messages` next to its broker, or list them in its specification"
        )
    for struct in types:
        config = struct.__struct_config__
        if config.tag is None or not config.array_like:
            raise ProtocolError(
                f"{struct.__name__} of protocol {spec.name!r} cannot be encoded: declare it with tag=True, "
                "array_like=True"
            )
    return types


@lru_cache
def _found(package: str) -> tuple[type[msgspec.Struct], ...]:
    try:
        module = importlib.import_module(f"{package}.messages")
    except ModuleNotFoundError:
        return ()
    own = [name for name, value in vars(module).items() if _is_message(value) and value.__module__ == module.__name__]
    public = [name for name in sorted(getattr(module, "__all__", own)) if not name.startswith("_")]
    return tuple(value for name in public if _is_message(value := getattr(module, name)))


def _is_message(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__struct_config__.tag is not None
