"""The options of the sink, looked at before anything is done with them."""

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
    """What the user wants."""

    network: Options
    """How to get there."""
    sink: str
    """The name of the sink: its events carry it."""
    staging: str
    """The directory where tasks put what is to be published; the driver and all executors see it."""
    batch: str = ""
    """The name of a batch that is written once, however often that is tried; empty: each is a new one."""
    payload: str = "payload"
    """The column that becomes the payload."""
    publishers: int = 1
    """So many clients publish a batch at most; with one, all rows are published in their order."""
    published: tuple[int, ...] = ()
    """How many events of the batch that was being published are there, if brokers have forgotten it, by client."""

    @staticmethod
    def of(given: Mapping[str, str]) -> "SinkOptions":
        """What these options say, or a sentence about the first that is wrong."""
        told = {name.lower(): value.strip() for name, value in given.items() if name.lower() != "path"}
        check_names("sink", told, _NAMES)
        network = Options.of({name: told[name] for name in ("url", "credentials", "timeout") if name in told})
        return SinkOptions(
            network=network,
            sink=_name("sink", told.get("sink", ""), "it names the sink in the network, such as 'enriched-orders'"),
            staging=_directory(told),
            batch=_name("batch", told["batch"], "it names what is written") if "batch" in told else "",
            payload=told.get("payload") or "payload",
            publishers=_publishers(told.get("publishers", "1"), _directory(told)),
            published=_numbers("published", told["published"]) if "published" in told else (),
        )


def _name(option: str, value: str, what: str) -> str:
    if not value:
        raise SparkError(f'the option "{option}" is missing: {what}')
    if len(value) > _NAME_MAX or not value.isprintable():
        raise SparkError(f'the option "{option}" is a name of up to {_NAME_MAX} printable characters, not {value!r}')
    return value


def _numbers(option: str, value: str) -> tuple[int, ...]:
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise SparkError(f'the option "{option}" is a number of events, or several separated by commas, not {value!r}')
    return tuple(map(int, parts))


def _publishers(value: str, staging: str) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= PUBLISHERS_MAX:
        raise SparkError(f'the option "publishers" is a whole number from 1 to {PUBLISHERS_MAX}, not {value!r}')
    if int(value) > 1 and "://" in staging:
        raise SparkError(
            "several publishers need a staging directory with locks, and a store of objects has none; set the option "
            '"publishers" to 1, or name a directory with the option "staging"'
        )
    return int(value)


def _directory(told: Mapping[str, str]) -> str:
    """Where to stage: as the user says, or beside the checkpoint, with which it lives and dies."""
    if told.get("staging"):
        return _place("staging", told["staging"])
    if told.get("checkpointlocation"):
        return below(_place("checkpointLocation", told["checkpointlocation"]), "gapless-sink")
    raise SparkError(
        'the option "staging" is missing: a directory that the driver and all executors see, where tasks put what '
        "is to be published"
    )


def _place(option: str, text: str) -> str:
    """The path of a directory, or the URL of a place in a store of objects."""
    parts = urlsplit(text)
    if parts.scheme in SCHEMES:
        return text
    if parts.scheme not in ("", "file") or parts.netloc:
        raise SparkError(
            f'the option "{option}" is {text!r}, but tasks stage in a directory of a file system, or in a store of '
            f'objects ({", ".join(SCHEMES)}); name one with the option "staging"'
        )
    return unquote(parts.path) if parts.scheme else text
