"""The laboratory: experiments as files, run as sweeps, and the figures of the papers.

| what | where |
| --- | --- |
| what stands in an experiment's file | `experiment`, `experiment_file` |
| which runs it asks for | `grid` |
| what happens in a run: a network and its clients | `workloads` |
| what is measured in it | `observer`, `measures`, `conduct` |
| many runs, here or on a cluster, and what is kept of them | `tasks`, `sweep`, `process_pool`, `store` |
| pictures, tables and the report | `figures` |
| what `gapless lab` does with all that | `command` |

A run is a function of its case, wherever it takes place. Nothing here imports PySpark: a sweep hands its cases to a
pool of workers, and a cluster is one of them (`gapless_spark.task_pool`).
"""
