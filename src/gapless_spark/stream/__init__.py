"""Streams of events on Spark: the format `gapless`.

| topic | module |
| --- | --- |
| the options of the source | `options` |
| events as columns | `columns`, `variant`, `arrays` |
| conditions that brokers evaluate | `pushdown` |
| the end of a micro-batch | `lookout`, `offsets` |
| reading in a task | `reading`, `connection` |
| quiet end of a worker that Spark no longer needs | `quiet_worker` |
| Spark's interfaces | `source`, `sink` |
| older history, from an archive | `continuing` |
| the durable position of a query | `durable` |
| the lag of a query | `lag` |
| the options of the sink | `sink_options` |
| columns as events | `layout` |
| timestamps, dates, decimals, arrays | `conversions` |
| the staging directory of the sink | `staging`, `files` |
| the same in an object store | `object_staging`, `objects` |
| exactly-once publication of a batch | `committing`, `share` |
| workers that publish their share of a batch | `publishers` |
| errors as sentences | `gapless_spark.error_sentences` |
"""

from gapless_spark.stream.source import GaplessSource, register

__all__ = ["GaplessSource", "register"]
