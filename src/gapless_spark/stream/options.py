"""The options of the source, checked before anything is done with them."""

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
    """The options of the source, parsed."""

    url: str
    """Addresses of one or more brokers, as `gapless.connect` takes them."""
    filter: str = "TRUE"
    """The filter, which brokers evaluate."""
    credentials: str | None = None
    """The file with the credentials; it must exist on every machine that reads."""
    is_variant: bool = False
    """Whether attributes are a VARIANT instead of a map of strings."""
    start: Since = ""
    """The start: a position, a time, an age, "earliest" or "latest"; empty if not given."""
    end: Since = LATEST
    """Where a batch query ends."""
    events_max: int = 0
    """The maximum number of events in one micro-batch; 0: no limit."""
    bytes_max: int = 0
    partition: int = _PARTITION
    """The approximate number of events that one task reads."""
    fails_on_loss: bool = True
    """Whether a query ends if part of the history it should read has been discarded."""
    timeout_s: float = _TIMEOUT_S
    """The timeout for finding a broker."""
    archive: str = ""
    """The archive with older history: a directory that the driver and all executors can read."""
    durable: str = ""
    """The name under which brokers store the query's position; empty if they do not."""

    @staticmethod
    def of(given: Mapping[str, str]) -> "Options":
        """Return the parsed options; raise an error about the first invalid one."""
        chosen = {name.lower(): value for name, value in given.items() if name.lower() != "path"}
        check_names("source", chosen, _NAMES)

        def value(name: str, default: str = "") -> str:
            return chosen.get(name.lower(), default).strip()

        if not value("url"):
            raise SparkError(
                'the option "url" is missing: set it to the address of a broker, such as gapless://host:7400'
            )
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
    """Raise an error about the first name, in lower case, that is not the name of an option."""
    known = {known.lower(): known for known in names}
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {known[close[0]]!r}?" if close else f"the options are {', '.join(names)}"
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
    """Return a count; 0 if it is not given."""
    if not value:
        return 0
    if not value.isascii() or not value.isdigit() or not 0 < int(value) < 2**31:
        raise SparkError(f'the option "{name}" must be a whole number from 1 to {2**31 - 1}, not {value!r}')
    return int(value)


def _position(name: str, value: str) -> Since:
    """Return a word, a position, a time or an age."""
    if value.lower() in ("", EARLIEST, LATEST):
        return value.lower()
    try:
        is_now = moment_of(f'the option "{name}"', value).is_now
    except CallError as error:
        raise SparkError(f"{error}; or write 'latest'") from None
    return LATEST if is_now else value
