"""Compares compaction with Java's: ``python -m benchmarks.iceberg_compact_peer JAR [FILES]``.

JAR is Iceberg's runtime for Spark, such as iceberg-spark-runtime-4.1_2.13-1.12.0.jar. Java calls
``rewrite_data_files`` in a Spark of two threads, which has done the same work once before. Both
start from the same files, and must end with the same rows. The CPU time is that of the calls alone.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.small_files import (
    LARGER_FILE_ROWS,
    NAME,
    keep,
    opened,
    restore,
    sums,
    write_small_files,
)
from spark_jobs.runtime.spark_session import start_session

__all__ = ["compare"]

FILES = 50
ROUNDS = 3
TICKS = 100
"""Ticks of the clock in a second, by which Linux counts the CPU time of a process."""


def compare(jar: Path, folder: Path, files: int, rounds: int = ROUNDS) -> list[str]:
    """Return one line for each table: the name, MB, CPU seconds of ours and of Java, the ratio."""
    found = []
    for name, deleted in (("row groups copied", None), ("with deletes", "status = 'returned'")):
        place = folder / name.replace(" ", "-")
        place.mkdir()
        table = write_small_files(place, files * LARGER_FILE_ROWS, file_rows=LARGER_FILE_ROWS)
        if deleted is not None:
            table.delete(deleted)
        keep(place)
        size = sum(path.stat().st_size for path in place.rglob("*.parquet")) / 1e6
        theirs, expected = _by_java(jar, place, rounds)
        ours, rows = _by_us(place, rounds)
        if rows != expected:
            raise AssertionError(f"the rows differ, nothing was measured: {rows}, {expected}")
        cells = f"{size:.0f} | {ours:.2f} | {size / ours:.0f} | {theirs:.2f} | {size / theirs:.0f}"
        found.append(f"| {name} | {cells} | {theirs / ours:.1f} |")
    return found


def _by_us(place: Path, rounds: int) -> tuple[float, object]:
    def work() -> None:
        opened(place).compact(strategy="full", executor="threads")

    return _measured(place, work, time.process_time, rounds)


def _by_java(jar: Path, place: Path, rounds: int) -> tuple[float, object]:
    spark = _session(jar, place)
    machine = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    options = "map('min-input-files', '2')"

    def work() -> None:
        spark.sql(f"CALL peer.system.rewrite_data_files('{NAME}', options => {options})").collect()

    try:
        return _measured(place, work, lambda: _cpu(machine), rounds)
    finally:
        spark.stop()


def _session(jar: Path, place: Path) -> Any:
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    return start_session(
        "compaction by Java",
        master="local[2]",
        conf={
            "spark.jars": str(jar),
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.peer": catalog,
            "spark.sql.catalog.peer.type": "hadoop",
            "spark.sql.catalog.peer.warehouse": f"file://{place}",
            "spark.sql.catalog.peer.cache-enabled": False,
        },
    )


def _measured(
    place: Path, work: Callable[[], object], cpu: Callable[[], float], rounds: int
) -> tuple[float, object]:
    """Return the median of the CPU seconds after a warm-up, and sums of the rows at the end."""
    times: list[float] = []
    for _ in range(rounds + 1):
        restore(place)
        before = cpu()
        work()
        times.append(cpu() - before)
    return median(times[1:]), sums(opened(place).scan().to_batches())


def _cpu(process: int) -> float:
    """Return the CPU seconds of another process, all threads, from Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main(arguments: Sequence[str]) -> None:
    """Print a table with a line for each table."""
    jar, files = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else FILES
    with tempfile.TemporaryDirectory(prefix="lake-bench-java-") as folder:
        lines = compare(jar, Path(folder), files)
    print("| table | MB | ours, CPU s | MB/s a core | Java, CPU s | MB/s a core | times ours |")
    print("|---" * 7 + "|")
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
