"""The live audit: a streaming query over the recordings that the clients of a running network write.

| topic | module |
| --- | --- |
| recordings as a stream: an offset is how far each file was read | `parts_source` |
| the actions of all clients in order, then each subscription: state by run, and by subscription | `processors` |
| the query, from its first batch to its verdict | `query` |

The rules are in `gapless.checkers.live`, which does not depend on Spark. Nothing is imported here, because Spark waits
at most ten seconds for the processes that it starts for the source.
"""
