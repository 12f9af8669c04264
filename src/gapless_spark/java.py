"""Checks for the Java that Spark needs before Spark starts, so that its absence is a one-sentence error."""

import os
import re
import shutil
import subprocess

from gapless.errors import SparkError

__all__ = ["require_java"]

VERSION_LEAST = 17
"""The minimum version for Spark 4."""

_WAY_OUT = (
    f"install Java {VERSION_LEAST} or newer (on Debian: apt-get install default-jre-headless) "
    "and put it on the PATH or name it in JAVA_HOME"
)


def require_java() -> None:
    """Raise a `SparkError` unless Spark will find a Java that is recent enough."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        raise SparkError(f"Spark needs Java, which is not installed: {_WAY_OUT}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        raise SparkError(f"Spark needs Java, but {java} does not run: {_WAY_OUT}") from None
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < VERSION_LEAST:
        raise SparkError(f"{java} is too old for Spark: {_WAY_OUT}")
