"""Checks which Python Spark's workers run, and whether it has the packages they need.

Unless PYSPARK_PYTHON is set, Spark runs the first `python3` in the path, which may not be the interpreter of the
program. If it lacks a package, Spark reports that with two long stack traces, so this module checks it first.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from gapless.errors import SparkError

__all__ = ["prepare_worker_python"]

PATIENCE_S = 60.0
_VARIABLE = "PYSPARK_PYTHON"


def prepare_worker_python(spark: SparkSession) -> None:
    """Let local workers run this interpreter, unless the user chose another. Raise a `SparkError` if an interpreter on
    this machine lacks a package. With Spark Connect, and for executors elsewhere, this cannot be checked."""
    if is_remote():
        return
    context = spark.sparkContext
    chosen = os.environ.get(_VARIABLE) or spark.conf.get("spark.pyspark.python", None)
    if not chosen and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
    found = shutil.which(context.pythonExec)
    if found is not None and found != sys.executable:
        missing = _missing_in(found)
        if missing:
            raise SparkError(
                f"Spark's workers run {found}, which lacks the package {missing}: install gapless[spark] there, "
                f"or set {_VARIABLE}={sys.executable} before the session is made"
            )


@lru_cache(maxsize=16)
def _missing_in(python: str) -> str:
    """Return the package that this interpreter lacks; empty if it lacks none, or if the machine is too busy
    to answer."""
    command = [python, "-m", "gapless_spark.stream.sink"]  # which imports what a worker needs, and does nothing
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return ""
    said = tried.stderr.strip().splitlines()
    if not tried.returncode or not said:
        return ""
    missing = re.search(r"No module named '?(\w+)", said[-1])
    return said[-1] if missing is None else repr(missing[1])
