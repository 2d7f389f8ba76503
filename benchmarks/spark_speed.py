"""Compares the paths through Spark with Spark alone: ``python -m benchmarks.spark_speed``.

One session, ``local[2]``; candidates in turn, round by round, wall time, as most of the work is
done by other processes than this one. Before a time counts all of a question give one answer.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
import spark_jobs
from benchmarks.sample_rows import sample_batches
from spark_jobs.ingest import run as ingest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["QUESTIONS", "main"]

Work = Callable[[], object]
BUCKETS = 8
FILES = 8
COMPACTED, MERGED, TARGET = "bench.compacted", "bench.merged", "bench.target"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Work to be timed, and how much of the baseline's speed it is to have."""

    name: str
    work: Work
    target: float | None = None
    before: Work = tuple


@dataclass(frozen=True, slots=True)
class Data:
    """What all questions are asked of."""

    spark: SparkSession
    warehouse: Path
    files: Path

    def table(self, name: str) -> lake.Table:
        return lake.open_catalog(str(self.warehouse)).table(name)

    def rows(self) -> DataFrame:
        return self.spark.read.parquet(str(self.files))

    def parquet_of(self, name: str) -> DataFrame:
        """All files of a table to Spark alone, those that have to be merged too."""
        found = self.table(name).system_table("files").scan().to_arrow()["file_path"].to_pylist()
        return self.spark.read.parquet(*found)


def reads(data: Data) -> Iterator[Candidate]:
    """All columns of a compacted table; the first is the baseline."""
    yield Candidate("spark.read.parquet", lambda: drain(data.parquet_of(COMPACTED)))
    yield Candidate("read_table", lambda: drain(read(data, COMPACTED)), 0.95)
    source = data.spark.read.format("lake")
    yield Candidate("format('lake')", lambda: drain(source.load(COMPACTED)), 0.4)


def column_reads(data: Data) -> Iterator[Candidate]:
    """One column of some rows of a compacted table."""
    yield Candidate("spark.read.parquet", lambda: total(data.parquet_of(COMPACTED)))
    yield Candidate("read_table", lambda: total(read(data, COMPACTED)), 0.95)


def merged_reads(data: Data) -> Iterator[Candidate]:
    """A table whose rows have to be merged, against its files read without that."""
    yield Candidate("spark.read.parquet", lambda: drain(data.parquet_of(MERGED)))
    yield Candidate("read_table", lambda: drain(read(data, MERGED)), 0.45)


def writes(data: Data) -> Iterator[Candidate]:
    """Rows into sorted buckets."""
    out = data.warehouse / "native"
    yield Candidate(
        "repartition + sort + write.parquet",
        lambda: (
            data.rows()
            .repartition(BUCKETS, "k")
            .sortWithinPartitions("k")
            .write.option("compression", "zstd")
            .parquet(str(out))
        ),
        before=lambda: shutil.rmtree(out, ignore_errors=True),
    )
    empty = lambda: data.table(TARGET).truncate()  # noqa: E731 - one word for two candidates
    yield Candidate(
        "write_table", lambda: spark_jobs.write_table(data.rows(), TARGET), 1.7, before=empty
    )
    request = {
        "warehouse": str(data.warehouse),
        "table": TARGET,
        "source": f"{data.files}/*.parquet",
        "engine": "spark",
    }
    yield Candidate("ingest of files", lambda: ingest(request, data.spark), 3.0, before=empty)


def compactions(data: Data) -> Iterator[Candidate]:
    """Full compaction, from the same state each time."""
    spare = data.warehouse.parent / "spare"
    place = data.warehouse / "bench.db" / "merged"
    shutil.copytree(place, spare)

    def again() -> None:
        shutil.rmtree(place)
        shutil.copytree(spare, place)

    table = data.table(MERGED)
    executor = spark_jobs.SparkExecutor(data.spark)
    yield Candidate("threads", lambda: table.compact(executor="threads"), before=again)
    yield Candidate("spark", lambda: table.compact(executor=executor), 1 / 1.15, before=again)


QUESTIONS = {
    "read": reads,
    "read a column": column_reads,
    "read and merge": merged_reads,
    "write": writes,
    "compact": compactions,
}


def main(arguments: Sequence[str]) -> int:
    """Ask all questions, and print a table with the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_speed", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of each table")
    parser.add_argument("--rounds", type=int, default=3, help="times each is measured")
    parser.add_argument("questions", nargs="*", help=", ".join(QUESTIONS))
    asked = parser.parse_args(arguments)
    print("| question | candidate | seconds | x as fast as the first | target |")
    print("|---|---|---|---|---|")
    with made_data(asked.rows) as data:
        for name in asked.questions or QUESTIONS:
            for line in measured(name, [*QUESTIONS[name](data)], asked.rounds):
                print(line, flush=True)
    return 0


def measured(question: str, candidates: Sequence[Candidate], rounds: int) -> Iterator[str]:
    """A line for each candidate."""
    times: dict[str, list[float]] = {candidate.name: [] for candidate in candidates}
    for number in range(rounds + 1):  # the first round warms everybody up
        for candidate in candidates:
            candidate.before()
            began = time.perf_counter()
            candidate.work()
            if number:
                times[candidate.name].append(time.perf_counter() - began)
    base = times[candidates[0].name]
    for candidate in candidates:
        own = times[candidate.name]
        ratio = median(one / other for one, other in zip(base, own, strict=True))
        wanted = "" if candidate.target is None else f"{candidate.target:.2f}"
        yield f"| {question} | {candidate.name} | {median(own):.2f} | {ratio:.2f} | {wanted} |"


def read(data: Data, name: str) -> DataFrame:
    return spark_jobs.read_table(data.spark, name)


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def total(frame: DataFrame) -> object:
    return frame.where("k % 10 = 3").agg({"v": "sum"}).first()


@contextmanager
def made_data(rows: int) -> Iterator[Data]:
    """A session, files, a compacted table and one whose five runs overlap."""
    with tempfile.TemporaryDirectory(prefix="lake-bench-spark-") as folder:
        warehouse, files = Path(folder, "warehouse"), Path(folder, "files")
        files.mkdir()
        spark = spark_jobs.session("bench", master="local[2]", warehouse=str(warehouse))
        try:
            catalog = lake.open_catalog(str(warehouse))
            catalog.create_database("bench")
            parts = [*_parts(rows)]
            for number, part in enumerate(parts):
                pq.write_table(part, files / f"part-{number}.parquet", compression="zstd")
            options = {"bucket": str(BUCKETS), "target-file-size": "1 gb"}
            for name in (COMPACTED, MERGED, TARGET):
                catalog.create_table(name, parts[0].schema, primary_key=["k"], options=options)
            for part in parts:
                for name in (COMPACTED, MERGED):
                    catalog.table(name).write(part)
            catalog.table(COMPACTED).compact()
            yield Data(spark, warehouse, files)
        finally:
            spark.stop()


def _parts(rows: int) -> Iterator[pa.Table]:
    """Runs of which each takes up half of the keys of the one before, in no order."""
    import numpy as np

    size = rows // FILES
    random = np.random.default_rng(20_240_301)
    values = pa.Table.from_batches(sample_batches(size * FILES))
    names = [name for name in values.column_names if name != "k"]
    for number in range(FILES):
        keys = random.permutation(size) + number * size // 2
        part = values.select(names).slice(number * size, size)
        yield part.add_column(0, pa.field("k", pa.int64(), nullable=False), pa.array(keys))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
