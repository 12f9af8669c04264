"""Options and columns that a sink cannot use are refused, each with a sentence."""

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from gapless.errors import GaplessError
from gapless_spark.stream.layout import Layout
from gapless_spark.stream.sink_options import SinkOptions

from .network import schema

GOOD = {"url": "gapless://127.0.0.1:7400", "sink": "orders", "staging": "/shared"}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"url": ""}, 'the option "url" is missing'),
        ({"sinc": "x"}, "the sink has no option 'sinc'; did you mean 'sink'?"),
        ({"filter": "TRUE"}, "the sink has no option 'filter'"),
        ({"sink": ""}, 'the option "sink" is missing: it names the sink'),
        ({"sink": "a\nb"}, "must be a name of up to 200 printable characters"),
        (
            {"staging": ""},
            'the option "staging" is missing: set it to a directory that the driver and all executors share',
        ),
        ({"staging": "hdfs://host/x"}, "but tasks stage in a directory of a file system"),
        ({"staging": "", "checkpointLocation": "ftp://b/x"}, 'the option "checkpointLocation" is .ftp://b/x., but'),
        ({"staging": "s3://b/x", "publishers": "2"}, "several publishers need a staging directory with locks"),
        ({"batch": ""}, 'the option "batch" is missing'),
        ({"publishers": "0"}, 'the option "publishers" must be a whole number from 1 to'),
        ({"published": "many"}, 'the option "published" must be a number of events'),
    ],
)
def test_a_bad_option_is_named(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(GaplessError, match=complaint):
        SinkOptions.of(GOOD | options)


def test_a_stream_stages_beside_its_checkpoint() -> None:
    given = {"url": "host", "sink": "orders", "CheckpointLocation": "file:///some/where%20else/"}
    assert SinkOptions.of(given).staging == "/some/where else/gapless-sink"


@pytest.mark.parametrize(
    ("columns", "payload", "complaint"),
    [
        (
            StructType().add("n", ArrayType(StringType())),
            "payload",
            "the column 'n' is ARRAY<STRING>, but an attribute is STRING.*make it the payload, cast it",
        ),
        (schema(**{"sink.n": "long"}), "payload", "has the name of an attribute that the sink adds"),
        (schema(n="long"), "body", "there is no column 'body' for the payload; the columns are n"),
        (schema(payload="long"), "payload", "the column 'payload' is BIGINT, but the payload is BINARY, STRING, ARRAY"),
        (
            StructType().add("attributes", MapType(StringType(), StructType())),
            "payload",
            "but attributes in a map are MAP<STRING, STRING>",
        ),
    ],
)
def test_columns_that_do_not_fit_are_named(columns: StructType, payload: str, complaint: str) -> None:
    with pytest.raises(GaplessError, match=complaint):
        Layout(columns, payload)


def test_the_largest_event_is_found_before_anything_is_published() -> None:
    columns = schema(n="long", note="string").add("attributes", MapType(StringType(), StringType()))
    layout = Layout(columns.add("payload", "binary"), "payload")
    kind = pa.map_(pa.string(), pa.string())
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 2, None]),
            pa.array(["é" * 10, None, ""]),
            pa.array([[("k", "v")], None, [("long", "x" * 100)]], kind),
            pa.array([b"." * 50, b"", None]),
        ],
        names=["n", "note", "attributes", "payload"],
    )
    events = list(layout.events(batch, "orders", "run/0", 7))
    assert events[0] == (
        {"k": "v", "n": 1, "note": "é" * 10, "sink.id": "orders", "sink.batch": "run/0", "sink.n": 7}, b"." * 50
    )  # fmt: skip
    assert events[1][0] == {"n": 2, "sink.id": "orders", "sink.batch": "run/0", "sink.n": 8}
    exact = [
        len(payload) + sum(16 + len(name) + (len(value.encode()) if isinstance(value, str) else 0)
                           for name, value in attributes.items())
        for attributes, payload in events
    ]  # fmt: skip
    assert max(exact) <= layout.largest(batch, len("orders") + len("run/0")) <= max(exact) + 50
