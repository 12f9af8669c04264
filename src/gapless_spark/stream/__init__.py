"""Streams of events on Spark: the format `gapless`.

| rule | file |
| --- | --- |
| what the options mean | `options` |
| events as columns | `columns`, `variant` |
| conditions that brokers evaluate | `pushdown` |
| where a micro-batch ends | `lookout`, `offsets` |
| what a task reads | `reading`, `connection` |
| what Spark asks for | `source` |
| errors as sentences | `told` |
"""

from gapless_spark.stream.source import GaplessSource, register

__all__ = ["GaplessSource", "register"]
