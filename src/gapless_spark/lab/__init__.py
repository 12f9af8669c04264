"""The laboratory: experiments as files, run as sweeps on Spark, and the figures of the papers.

| what | where |
| --- | --- |
| what stands in an experiment's file | `experiment`, `experiment_file` |
| which runs it asks for | `grid` |
| what happens in a run: a network and its clients | `workloads` |
| what is measured in it | `observer`, `measures`, `conduct` |
| many runs on Spark, and what is kept of them | `tasks`, `sweep`, `store` |
| pictures, tables and the report | `figures` |

Everything up to `conduct` is plain Python that knows nothing of Spark: a run is a function of its case, wherever it
takes place.
"""
