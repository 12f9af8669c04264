"""The laboratory: experiments as files, run as sweeps, and the figures of the papers.

| topic | module |
| --- | --- |
| the format of an experiment file | `experiment`, `experiment_file` |
| the runs that an experiment asks for | `grid` |
| the network and the clients of a run | `workloads` |
| the measurements of a run | `observer`, `measures`, `conduct` |
| many runs, on this machine or on a cluster, and their results | `tasks`, `sweep`, `process_pool`, `store` |
| pictures, tables and the report | `figures` |
| the implementation of `gapless lab` | `command` |

A run is a pure function of its case, on any machine. Nothing here imports PySpark: a sweep hands its cases to a pool of
workers, and a Spark cluster is one kind of pool (`gapless_spark.task_pool`).
"""
