"""The source refuses invalid options, each with a clear error."""

import asyncio
from pathlib import Path

import pytest

from gapless import sync
from gapless.errors import GaplessError
from gapless.runtime.fleet import Fleet, local_network
from gapless_spark.stream.connection import Connection
from gapless_spark.stream.options import Options

from .network import PATIENCE_S

GOOD = {"url": "gapless://127.0.0.1:7400"}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"url": ""}, 'the option "url" is missing: set it to the address of a broker'),
        ({"url": "kafka://x:1"}, "unsupported URL 'kafka://x:1'; write gapless://host:port"),
        ({"url": "x:99999"}, "'x:99999' is not an address"),
        ({"filtr": "TRUE"}, "the source has no option 'filtr'; did you mean 'filter'?"),
        ({"colour": "red"}, "the source has no option 'colour'; the options are url, filter"),
        ({"filter": "a == 1"}, "equality is written with a single ="),
        ({"maxEventsPerTrigger": "many"}, 'the option "maxEventsPerTrigger" must be a whole number from 1'),
        ({"maxBytesPerTrigger": "0"}, 'the option "maxBytesPerTrigger" must be a whole number from 1'),
        ({"startingPosition": "yesterday"}, "is 'yesterday', which is not a position; .*or write 'latest'"),
        ({"endingPosition": "-10m"}, "is '-10m', which is not a position"),
        ({"failOnDataLoss": "maybe"}, "is true or false, not 'maybe'"),
        ({"attributes": "json"}, "is map or variant, not 'json'"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(GaplessError, match=complaint):
        Options.of(GOOD | options)


def test_keywords_are_accepted_in_any_case() -> None:
    options = Options.of({"URL": "one:7400,two", "startingposition": "p1794843125287132", "FailOnDataLoss": "FALSE"})
    assert options.url == "gapless://one:7400,two"
    assert options.start == "p1794843125287132"
    assert not options.fails_on_loss
    assert Options.of(GOOD | {"startingPosition": "Earliest"}).start == "earliest"


def test_a_connection_of_spark_writes_no_part_of_a_trace(tmp_path: Path) -> None:
    """A query creates a connection for each task."""
    parts = tmp_path / "parts"
    parts.mkdir()
    with Fleet(local_network(1), tmp_path / "network", trace=str(parts)) as fleet:
        fleet.start_all()
        asyncio.run(fleet.until_whole(PATIENCE_S))
        with Connection(Options.of({"url": fleet.config.url, "timeout": str(int(PATIENCE_S))})) as connection:
            connection.run(connection.client.position())
        assert not any(path.is_file() for path in parts.rglob("*"))
        with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
            client.advertise("TRUE")
            client.publish({"n": 1})
    assert any(path.is_file() for path in parts.rglob("*")), "another client does"
