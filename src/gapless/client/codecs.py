"""Codecs, which convert payloads between bytes and values. `connect(…, codec="json")` chooses one.

With a codec, a payload can be any value that it can encode, and `client.decode(event)` returns the value. In typed
events the one field that cannot be an attribute (a list, a struct, a table) is the payload. Bytes are published as they
are.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from gapless.errors import CallError, EventError

__all__ = ["CODECS", "Codec", "CodecLike", "encoded", "find_codec"]


class Codec(Protocol):
    """The interface of a codec that an application defines."""

    def encode(self, value: Any, /) -> bytes:
        """Return the value encoded as a payload.

        Parameters:
            value: the payload given to `publish`.

        Example: `return yaml.safe_dump(value).encode()`
        """
        ...

    def decode(self, payload: bytes, /) -> Any:
        """Return the decoded payload. Raise a `ValueError` if it is invalid.

        Parameters:
            payload: the bytes of an event.

        Example: `return yaml.safe_load(payload)`
        """
        ...


CodecLike: TypeAlias = Codec | str | None
"""A codec, or the name of a built-in one: "json", "msgpack" or "arrow"."""


class _Functions(NamedTuple):
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _plain(value: Any) -> Any:
    """Convert pydantic models, which msgspec does not encode, to dictionaries."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump()
    raise NotImplementedError


def _to_arrow(value: Any) -> bytes:
    import pyarrow

    table = pyarrow.Table.from_batches([value]) if isinstance(value, pyarrow.RecordBatch) else value
    if not isinstance(table, pyarrow.Table):
        table = pyarrow.Table.from_pylist(value)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _from_arrow(payload: bytes) -> Any:
    import pyarrow

    with pyarrow.ipc.open_stream(payload) as reader:
        return reader.read_all()


_json = msgspec.json.Encoder(enc_hook=_plain)
_msgpack = msgspec.msgpack.Encoder(enc_hook=_plain)
CODECS: dict[str, Codec] = {
    "json": _Functions(_json.encode, msgspec.json.decode),
    "msgpack": _Functions(_msgpack.encode, msgspec.msgpack.decode),
    "arrow": _Functions(_to_arrow, _from_arrow),
}


def find_codec(codec: CodecLike) -> Codec | None:
    """Return the codec with this name, or the object itself if it has the methods of a codec. Raise an error for
    anything else.
    """
    if codec is None or (not isinstance(codec, str) and hasattr(codec, "encode") and hasattr(codec, "decode")):
        return codec
    if not isinstance(codec, str) or codec not in CODECS:
        raise CallError(
            f"codec must be {', '.join(map(repr, CODECS))} or an object with encode and decode, not {codec!r}"
        )
    if codec == "arrow":
        try:
            import pyarrow.ipc  # noqa: F401
        except ImportError:
            raise CallError('codec="arrow" needs pyarrow: install gapless[cli]') from None
    return CODECS[codec]


def encoded(codec: Codec, value: Any) -> bytes:
    """Return the encoded value, or raise an `EventError` if the codec cannot encode it."""
    try:
        return codec.encode(value)
    except Exception as error:  # codecs raise errors of many types
        raise EventError(f"this payload cannot be encoded: {error or type(error).__name__}") from error
