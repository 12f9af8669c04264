"""The live audit: a streaming query over the parts that the clients of a running network write.

| what | file |
| --- | --- |
| parts as a stream: an offset is how far each file was read | `parts_source` |
| the acts of all clients in an order, then each subscription: state by run, and by subscription | `processors` |
| the query, from its first batch to its verdict | `query` |

What is judged, and how, is in `gapless.checkers.live`, which knows no Spark. Nothing is imported here: Spark starts
processes for the source, and waits for them ten seconds.
"""
