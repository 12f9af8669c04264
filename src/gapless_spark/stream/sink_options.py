"""The options of the sink, checked before anything is done with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gapless.errors import SparkError
from gapless_spark.stream.objects import SCHEMES, below
from gapless_spark.stream.options import Options, check_names

__all__ = ["SinkOptions"]

_NAMES = ("url", "sink", "staging", "batch", "payload", "credentials", "timeout", "published",
          "publishers", "checkpointLocation")  # fmt: skip
_NAME_MAX = 200
PUBLISHERS_MAX = 1_000


@dataclass(frozen=True)
class SinkOptions:
    """The options of the sink, parsed."""

    network: Options
    """How to connect to the network."""
    sink: str
    """The name of the sink, which is an attribute of all its events."""
    staging: str
    """The directory of files to be published; the driver and all executors can access it."""
    batch: str = ""
    """The name of a batch, which is written once even if the write is repeated; empty if each write is a new batch."""
    payload: str = "payload"
    """The column that becomes the payload."""
    publishers: int = 1
    """The maximum number of clients that publish a batch; with one, rows are published in order."""
    published: tuple[int, ...] = ()
    """How many events of an interrupted batch exist, by client, for brokers that have forgotten it."""

    @staticmethod
    def of(given: Mapping[str, str]) -> "SinkOptions":
        """Return the parsed options; raise an error about the first invalid one."""
        chosen = {name.lower(): value.strip() for name, value in given.items() if name.lower() != "path"}
        check_names("sink", chosen, _NAMES)
        network = Options.of({name: chosen[name] for name in ("url", "credentials", "timeout") if name in chosen})
        return SinkOptions(
            network=network,
            sink=_name("sink", chosen.get("sink", ""), "it names the sink in the network, such as 'enriched-orders'"),
            staging=_directory(chosen),
            batch=_name("batch", chosen["batch"], "it is the name of the batch") if "batch" in chosen else "",
            payload=chosen.get("payload") or "payload",
            publishers=_publishers(chosen.get("publishers", "1"), _directory(chosen)),
            published=_numbers("published", chosen["published"]) if "published" in chosen else (),
        )


def _name(option: str, value: str, what: str) -> str:
    if not value:
        raise SparkError(f'the option "{option}" is missing: {what}')
    if len(value) > _NAME_MAX or not value.isprintable():
        raise SparkError(
            f'the option "{option}" must be a name of up to {_NAME_MAX} printable characters, not {value!r}'
        )
    return value


def _numbers(option: str, value: str) -> tuple[int, ...]:
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise SparkError(
            f'the option "{option}" must be a number of events, or several separated by commas, not {value!r}'
        )
    return tuple(map(int, parts))


def _publishers(value: str, staging: str) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= PUBLISHERS_MAX:
        raise SparkError(f'the option "publishers" must be a whole number from 1 to {PUBLISHERS_MAX}, not {value!r}')
    if int(value) > 1 and "://" in staging:
        raise SparkError(
            "several publishers need a staging directory with locks, which an object store does not have; "
            'set the option "publishers" to 1, or the option "staging" to a directory'
        )
    return int(value)


def _directory(chosen: Mapping[str, str]) -> str:
    """Return the staging directory: the user's, or one next to the checkpoint, which is deleted together with it."""
    if chosen.get("staging"):
        return _place("staging", chosen["staging"])
    if chosen.get("checkpointlocation"):
        return below(_place("checkpointLocation", chosen["checkpointlocation"]), "gapless-sink")
    raise SparkError(
        'the option "staging" is missing: set it to a directory that the driver and all executors share, where '
        "tasks store the events"
    )


def _place(option: str, text: str) -> str:
    """Return the path of a directory, or the URL of a place in an object store."""
    parts = urlsplit(text)
    if parts.scheme in SCHEMES:
        return text
    if parts.scheme not in ("", "file") or parts.netloc:
        raise SparkError(
            f'the option "{option}" is {text!r}, but tasks stage in a directory of a file system, or in an '
            f'object store ({", ".join(SCHEMES)}); set the option "staging" to one'
        )
    return unquote(parts.path) if parts.scheme else text
