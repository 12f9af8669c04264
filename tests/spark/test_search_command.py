"""`gapless sim search --spark` finds the same failures as a local search, and tries no seed twice."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.conftest import Cli

SEEDS = ("--scale", "small", "--no-invariants", "--json")


def verdicts(folder: Path) -> list[dict[str, Any]]:
    rows = pq.read_table(folder / "verdicts").to_pylist()
    return sorted(rows, key=lambda row: int(row["seed"]))


def test_seeds_are_tried_once_and_the_verdicts_are_kept(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for runs in (4, 8):
        on_spark = ("--spark", "--master", "local[2]", "--out", tmp_path)
        ran = cli("sim", "search", "--protocol", "gapless", "--runs", runs, *SEEDS, *on_spark)
        assert ran.code == 0, ran.err
        lines.append(json.loads(ran.out))
    assert [(each["runs"], each["valid"], each["finding"]) for each in lines] == [(4, 4, None), (8, 8, None)]
    assert [(row["seed"], row["status"]) for row in verdicts(tmp_path)] == [(seed, "valid") for seed in range(8)]
    ran = cli("sim", "search", "--protocol", "gryphon", "--runs", 1, *SEEDS, *on_spark)
    assert ran.code == 64
    assert "belongs to another search" in ran.err


def test_a_violation_is_the_one_that_is_found_here(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    what = ("sim", "search", "--protocol", "gryphon", "--faults", "crash", "--runs", 8, *SEEDS)
    here = cli(*what)
    there = cli(*what, "--spark", "--master", "local[2]", "--out", tmp_path)
    assert (here.code, there.code) == (1, 1)
    assert json.loads(there.out)["finding"] == json.loads(here.out)["finding"]
    assert verdicts(tmp_path)[-1]["status"] == "failed"
    assert verdicts(tmp_path)[-1]["seed"] == json.loads(here.out)["finding"]["seed"]


def test_a_place_without_spark_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert "add --spark" in cli("sim", "search", "--out", tmp_path).err
