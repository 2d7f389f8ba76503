"""Compares compaction with Java's: ``python -m benchmarks.iceberg_compact_peer``.

Java calls ``rewrite_data_files`` of Iceberg in a Spark of two threads. Both programs start from the
same files and must end with the same rows; if the compaction sorts, also in the same order.
``bin/javapeer.py`` fetches Iceberg's jar; ``bin/test java`` uses the same one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from benchmarks.harness import UnequalAnswersError
from benchmarks.iceberg_compact_report import MeasuredCase, Turn, compact_report
from benchmarks.iceberg_java import cpu_seconds_of, running_iceberg
from benchmarks.small_files import NAME, keep, opened, restore, sums, write_small_files

__all__ = ["CASES", "PeerCase", "check_order", "main", "make_table"]

BENCHMARKS = Path(__file__).resolve().parent
FILES, FILE_ROWS = 40, 75_000
WARM_UPS, ROUNDS = 6, 5
CATALOG = "org.apache.iceberg.spark.SparkCatalog"
ALL_FILES = "options => map('rewrite-all', 'true')"

Clock: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCase:
    """One compaction, with its arguments for this library and for Java."""

    sentence: str
    target: float
    """The required ratio: Java's CPU time divided by that of this library."""
    ours: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    theirs: str = ALL_FILES
    deleted: str | None = None
    """The condition of the rows that are deleted before the compaction."""
    order: Sequence[str] = ()
    """The columns whose values both programs must leave in the same order."""


CASES: Mapping[str, PeerCase] = {
    "copy": PeerCase(sentence="no row changes: row groups are copied", target=5),
    "deletes": PeerCase(
        sentence="a fifth of the rows is deleted", target=3, deleted="status = 'returned'"
    ),
    "sort": PeerCase(
        sentence="sorted by a text and a number",
        target=2,
        ours={"order_by": ["status", "v desc nulls last"]},
        theirs="strategy => 'sort', sort_order => 'status ASC NULLS FIRST, v DESC NULLS LAST', "
        + ALL_FILES,
        order=("status", "v"),
    ),
    "zorder": PeerCase(
        sentence="along a Z-order curve through a number and a time",
        target=3,
        ours={"order_by": ["v", "ts"], "order_strategy": "zorder"},
        theirs=f"strategy => 'sort', sort_order => 'zorder(v, ts)', {ALL_FILES}",
        order=("v", "ts"),
    ),
}


def main(arguments: Sequence[str]) -> None:
    """Print a line for each case, and write the report."""
    asked = _parsed(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="lake-bench-java-") as name,
        running_iceberg("compaction by Java") as spark,
    ):
        measured = []
        for case in asked.cases or CASES:
            measured.append(_measured(spark, Path(name), case, asked))
            print(measured[-1].line(), flush=True)
    words = [*asked.cases, f"--files {asked.files} --warm-ups {asked.warm_ups}"]
    report = compact_report(measured, " ".join([*words, f"--rounds {asked.rounds}"]))
    asked.out.write_text(report, encoding="utf-8")


def _measured(spark: Any, folder: Path, name: str, asked: argparse.Namespace) -> MeasuredCase:
    """Measure one case: Java alone until it is warm, then both in turns."""
    case, place = CASES[name], folder / name
    size = make_table(place, case, asked.files)
    _add_catalog(spark, name, place)
    machine = spark.sparkContext._jvm
    process = machine.java.lang.ProcessHandle.current().pid()

    def by_java() -> None:
        arguments = f"table => '{NAME}', {case.theirs}"
        spark.sql(f"CALL {name}.system.rewrite_data_files({arguments})").collect()

    def by_us() -> None:
        opened(place).compact(strategy="full", executor="threads", **case.ours)

    def theirs() -> float:
        machine.java.lang.System.gc()  # no round pays for the memory of another one
        return _timed(place, by_java, lambda: cpu_seconds_of(process))

    warm_ups = [theirs() for _ in range(asked.warm_ups)]
    turns, rows = [], _answer(place, case)
    for _ in range(asked.rounds):
        load, its = os.getloadavg()[0], theirs()
        turns.append(Turn(_timed(place, by_us, time.process_time), its, load))
        check_order(name, rows, _answer(place, case))
    return MeasuredCase(case.sentence, case.target, size, warm_ups, turns)


def make_table(place: Path, case: PeerCase, files: int) -> int:
    """Write the table of a case; return the bytes of its data files."""
    place.mkdir()
    table = write_small_files(place, files * FILE_ROWS, file_rows=FILE_ROWS)
    size = sum(path.stat().st_size for path in place.rglob("*.parquet"))
    if case.deleted is not None:
        table.delete(case.deleted)
    keep(place)
    return size


def _timed(place: Path, work: Callable[[], None], clock: Clock) -> float:
    """Restore the table as it was written, and return the CPU seconds of one compaction."""
    restore(place)
    before = clock()
    work()
    return clock() - before


def _answer(place: Path, case: PeerCase) -> tuple[object, pa.Table]:
    """Return sums of the rows, and the columns that show the order of the rows."""
    scan = opened(place).scan
    ordered = scan(columns=[*case.order]).to_arrow() if case.order else pa.table({})
    return sums(scan().to_batches()), ordered


def check_order(
    name: str, expected: tuple[object, pa.Table], found: tuple[object, pa.Table]
) -> None:
    """Raise if two results differ in the sums of their rows, or in the order of their rows."""
    if found[0] != expected[0]:
        raise UnequalAnswersError(
            f"{name}: compact() leaves rows with the sums {found[0]}, and Java with {expected[0]}; "
            "nothing was measured"
        )
    if not found[1].equals(expected[1]):
        raise UnequalAnswersError(
            f"{name}: compact() and Java leave the rows in different orders; nothing was measured"
        )


def _add_catalog(spark: Any, name: str, place: Path) -> None:
    prefix = f"spark.sql.catalog.{name}"
    spark.conf.set(f"{prefix}.type", "hadoop")
    spark.conf.set(f"{prefix}.warehouse", f"file://{place}")
    spark.conf.set(f"{prefix}.cache-enabled", "false")
    spark.conf.set(prefix, CATALOG)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.iceberg_compact_peer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--files", type=int, default=FILES, help=f"files of a table ({FILES})")
    parser.add_argument(
        "--warm-ups",
        type=int,
        default=WARM_UPS,
        help=f"rounds in which only Java runs, before both programs take turns ({WARM_UPS})",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds in turns ({ROUNDS})")
    parser.add_argument(
        "--out",
        type=Path,
        default=BENCHMARKS / "results" / "iceberg_compact_peer.md",
        metavar="FILE",
        help="the report",
    )
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.cases if name not in CASES]:
        parser.error(f"no case {', '.join(unknown)}: choose from {', '.join(CASES)}")
    return asked


if __name__ == "__main__":
    main(sys.argv[1:])
