"""The options of the source, looked at before anything is done with them."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gapless.client.positions import Since, moment_of
from gapless.errors import CallError, SparkError
from gapless.filters import parse
from gapless.runtime.address import parse_url

__all__ = ["EARLIEST", "LATEST", "Options", "check_names"]

EARLIEST, LATEST = "earliest", "latest"

_NAMES = (
    "url", "filter", "credentials", "attributes", "startingPosition", "endingPosition", "maxEventsPerTrigger",
    "maxBytesPerTrigger", "maxEventsPerPartition", "failOnDataLoss", "timeout", "archive", "durable",
)  # fmt: skip
_PARTITION = 16_384
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Options:
    """What the user wants."""

    url: str
    """Addresses of one or more brokers, as `gapless.connect` takes them."""
    filter: str = "TRUE"
    """Runs at the brokers."""
    credentials: str | None = None
    """The file with the credentials; it has to be there on every machine that reads."""
    is_variant: bool = False
    """Whether attributes are a VARIANT, and not a map of strings."""
    start: Since = ""
    """A position, a time, an age, "earliest", "latest"; empty if nothing was said."""
    end: Since = LATEST
    """Where a batch ends."""
    events_max: int = 0
    """In one micro-batch; 0: no limit."""
    bytes_max: int = 0
    partition: int = _PARTITION
    """About so many events are read by one task."""
    fails_on_loss: bool = True
    """Whether a query ends when some of what it should read is gone."""
    timeout_s: float = _TIMEOUT_S
    """So long a broker may take to be found."""
    archive: str = ""
    """Where older history is: a directory that the driver and all executors see."""
    durable: str = ""
    """The name under which brokers know how far the query got; empty if they need not know."""

    @staticmethod
    def of(given: Mapping[str, str]) -> "Options":
        """What these options say, or a sentence about the first that is wrong."""
        told = {name.lower(): value for name, value in given.items() if name.lower() != "path"}
        check_names("source", told, _NAMES)

        def value(name: str, default: str = "") -> str:
            return told.get(name.lower(), default).strip()

        if not value("url"):
            raise SparkError('the option "url" is missing: say where a broker is, such as gapless://host:7400')
        return Options(
            url=_url(value("url")),
            filter=_filter(value("filter", "TRUE")),
            credentials=value("credentials") or None,
            is_variant=_choice("attributes", value("attributes", "map"), ("map", "variant")) == "variant",
            start=_position("startingPosition", value("startingPosition")),
            end=_position("endingPosition", value("endingPosition")) or LATEST,
            events_max=_count("maxEventsPerTrigger", value("maxEventsPerTrigger")),
            bytes_max=_count("maxBytesPerTrigger", value("maxBytesPerTrigger")),
            partition=_count("maxEventsPerPartition", value("maxEventsPerPartition")) or _PARTITION,
            fails_on_loss=_choice("failOnDataLoss", value("failOnDataLoss", "true"), ("true", "false")) == "true",
            archive=value("archive"),
            durable=value("durable"),
            timeout_s=float(_count("timeout", value("timeout")) or _TIMEOUT_S),
        )


def check_names(what: str, given: Iterable[str], names: Sequence[str]) -> None:
    """Each of the given, in lower case, is a name of an option; or a sentence about the first that is none."""
    known = {known.lower(): known for known in names}
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {known[close[0]]!r}?" if close else f"there are {', '.join(names)}"
            raise SparkError(f"the {what} has no option {name!r}; {hint}")


def _url(text: str) -> str:
    url = text if "://" in text else f"gapless://{text}"
    parse_url(url)
    return url


def _filter(text: str) -> str:
    parse(text)
    return text


def _choice(name: str, value: str, choices: tuple[str, str]) -> str:
    if value.lower() not in choices:
        raise SparkError(f'the option "{name}" is {" or ".join(choices)}, not {value!r}')
    return value.lower()


def _count(name: str, value: str) -> int:
    """A number of things; 0 if nothing was said."""
    if not value:
        return 0
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 2**31:
        raise SparkError(f'the option "{name}" is a whole number from 1 to {2**31 - 1}, not {value!r}')
    return int(value)


def _position(name: str, value: str) -> Since:
    """A word, a position, a time or an age."""
    if value.lower() in ("", EARLIEST, LATEST):
        return value.lower()
    try:
        is_now = moment_of(f'the option "{name}"', value).is_now
    except CallError as error:
        raise SparkError(f"{error}; or write 'latest'") from None
    return LATEST if is_now else value
