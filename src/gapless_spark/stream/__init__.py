"""Streams of events on Spark: the format `gapless`.

| rule | file |
| --- | --- |
| what the options mean | `options` |
| events as columns | `columns`, `variant`, `arrays` |
| conditions that brokers evaluate | `pushdown` |
| where a micro-batch ends | `lookout`, `offsets` |
| what a task reads | `reading`, `connection` |
| a worker that Spark needs no longer ends quietly | `quiet_worker` |
| what Spark asks for | `source`, `sink` |
| older history, from an archive | `continuing` |
| brokers know how far a query got | `durable` |
| how far a query is behind | `lag` |
| what the options of the sink mean | `sink_options` |
| columns as events | `layout` |
| timestamps, dates, decimals, arrays | `conversions` |
| the directory of what is to be published | `staging`, `files` |
| the same in a store of objects | `object_staging`, `objects` |
| how a batch is published exactly once | `committing`, `share` |
| workers that publish their share of a batch | `publishers` |
| errors as sentences | `gapless_spark.told` |
"""

from gapless_spark.stream.source import GaplessSource, register

__all__ = ["GaplessSource", "register"]
