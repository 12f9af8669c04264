"""Streams of events on Spark: the format `gapless`.

| rule | file |
| --- | --- |
| what the options mean | `options` |
| events as columns | `columns`, `variant`, `arrays` |
| conditions that brokers evaluate | `pushdown` |
| where a micro-batch ends | `lookout`, `offsets` |
| what a task reads | `reading`, `connection` |
| what Spark asks for | `source`, `sink` |
| older history, from an archive | `continuing` |
| what the options of the sink mean | `sink_options` |
| columns as events | `layout` |
| what tasks write, until it is published | `staging` |
| how a batch is published once | `committing` |
| errors as sentences | `gapless_spark.told` |
"""

from gapless_spark.stream.source import GaplessSource, register

__all__ = ["GaplessSource", "register"]
