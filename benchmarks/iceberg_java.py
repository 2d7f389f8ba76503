"""Iceberg's Java library in a Spark of two threads, as the peer of benchmarks.

``bin/javapeer.py`` fetches Iceberg's jar; ``bin/test java`` uses the same one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_jobs.runtime.spark_session import start_session

__all__ = ["cpu_seconds_of", "running_iceberg"]

_ROOT = Path(__file__).resolve().parent.parent
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def running_iceberg(name: str) -> Iterator[Any]:
    """Yield a Spark session with Iceberg, and stop it after the block."""
    conf = {
        "spark.jars": str(_iceberg_jar()),
        "spark.sql.extensions": _EXTENSIONS,
        "spark.driver.memory": "2g",
    }
    spark = start_session(name, master="local[2]", conf=conf)
    try:
        yield spark
    finally:
        spark.stop()


def cpu_seconds_of(process: int) -> float:
    """Return the CPU seconds of all threads of another process; only on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _iceberg_jar() -> Path:
    """Return Iceberg's runtime for Spark, among the jars of the tests."""
    command = [sys.executable, "-B", str(_ROOT / "bin" / "javapeer.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout.strip())
    jars = Path(json.loads(done.stdout)["classpath"].split(os.pathsep)[1]).parent
    return next(jars.glob("iceberg-spark-runtime-*.jar"))
