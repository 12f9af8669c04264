"""The faults of Jepsen's analysis of NATS 2.12.1 (December 2025), against real brokers.

    make jepsen                                      # two networks, ten minutes each
    make jepsen ARGS="--minutes 2 --f 1 --seed 3"

| purpose | module |
| --- | --- |
| a disk that loses its unsynced writes | `unsynced.c`, `power` |
| the faults: damaged files, power failures, pauses, wrong clocks, partitions | `faults` |
| one run: clients, faults, a final read of the whole history, the verdict | `trial` |
| the report as a page | `page` |

The clients, and the faults that are not about disks, are those of `trials.chaos`; the checker is that of every trace.
"""
