"""The questions about reading and writing with Spark, and their candidates."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import spark_jobs
from benchmarks.spark_data import BUCKETS, COLUMNS, COMPACTED, MERGED, TARGET, Data, digest
from spark_jobs.ingest import run as ingest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["QUESTIONS", "Candidate", "SparkQuestion", "Work", "nothing"]

Work = Callable[[], object]
Frame = Callable[[], "DataFrame"]


def nothing() -> None:
    """Do nothing: the default preparation of a candidate."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Work to be timed."""

    name: str
    work: Work
    answer: Work | None
    """Computes a value after the work. The value must be equal for all candidates. None for a
    floor, which does only a part of the work.
    """
    target: float | None = None
    """The required speed, as a multiple of the first candidate's."""
    before: Work = nothing
    """Prepares the state for the work; not timed."""


@dataclass(frozen=True, slots=True)
class SparkQuestion:
    """Candidates, the first of which is the baseline."""

    sentence: str
    candidates: Callable[[Data], Iterator[Candidate]]


def read(data: Data) -> Iterator[Candidate]:
    """Yield the ways to read all rows. One of them gives the schema to Spark, so that Spark does
    not first read it from the files.
    """
    paths = data.paths_of(COMPACTED)
    known = spark_jobs.read_table(data.spark, COMPACTED).schema
    native = lambda: data.spark.read.parquet(*paths).select(*COLUMNS)  # noqa: E731
    told = lambda: data.spark.read.schema(known).parquet(*paths)  # noqa: E731
    yield _drained("spark.read.parquet", native)
    yield _drained("spark.read.schema.parquet", told)
    yield _drained("read_table", lambda: spark_jobs.read_table(data.spark, COMPACTED), 0.95)
    source = lambda: data.spark.read.format("lake").load(COMPACTED)  # noqa: E731
    yield _drained("format('lake')", source, 1 / 2.5)


def read_column(data: Data) -> Iterator[Candidate]:
    """Yield the ways to sum one column over a tenth of the rows, which are spread over all pages of
    the files.
    """
    paths = data.paths_of(COMPACTED)
    few = data.spark.read.format("lake").option("columns", "k, v")
    frames: dict[str, Frame] = {
        "spark.read.parquet": lambda: data.spark.read.parquet(*paths),
        "read_table": lambda: spark_jobs.read_table(data.spark, COMPACTED),
        "format('lake')": lambda: data.spark.read.format("lake").load(COMPACTED),
        "format('lake'), columns": lambda: few.load(COMPACTED),
    }
    for name, frame in frames.items():
        target = 0.95 if name == "read_table" else None
        yield Candidate(name, partial(_total, frame), partial(_total, frame), target)


def read_range(data: Data) -> Iterator[Candidate]:
    """Yield the ways to read one hundredth of the keys.

    The files are sorted by key, so push-down skips the rest of each file.
    """
    paths = data.paths_of(COMPACTED)
    known = spark_jobs.read_table(data.spark, COMPACTED).schema
    found = data.spark.read.schema(known).parquet(*paths).agg({"k": "max"}).first()
    assert found is not None
    start, end = found[0] // 2, found[0] // 2 + found[0] // 100
    asked = f"k >= {start} AND k < {end}"
    native = lambda: data.spark.read.parquet(*paths).select(*COLUMNS).where(asked)  # noqa: E731
    ours = lambda: spark_jobs.read_table(data.spark, COMPACTED).where(asked)  # noqa: E731
    pushed = lambda: spark_jobs.read_table(data.spark, COMPACTED, where=asked)  # noqa: E731
    source = lambda: data.spark.read.format("lake").option("where", asked).load(COMPACTED)  # noqa: E731
    yield _drained("spark.read.parquet", native)
    yield _drained("read_table, then where", ours, 0.95)
    yield _drained("read_table(where=...)", pushed, 0.95)
    yield _drained("format('lake'), option where", source)


def merge(data: Data) -> Iterator[Candidate]:
    """Yield the ways to merge: ``read_table``, and Spark alone by an aggregate. The floor reads all
    files without a merge.
    """
    paths = data.paths_of(MERGED)

    def native() -> DataFrame:
        return data.spark.read.parquet(*paths).select(*COLUMNS)

    yield Candidate("spark.read.parquet, unmerged", lambda: _drain(native()), None)
    yield _drained("read_table", lambda: spark_jobs.read_table(data.spark, MERGED), 0.45)
    yield _drained("groupBy(k), newest", lambda: newest(data, paths))


def newest(data: Data, paths: list[str]) -> DataFrame:
    """Return the newest row of each key, found by Spark alone."""
    from pyspark.sql import functions as sql

    row = sql.struct(*(sql.col(name) for name in COLUMNS))
    last = sql.max_by(row, sql.col("_SEQUENCE_NUMBER")).alias("row")
    return data.spark.read.parquet(*paths).groupBy("k").agg(last).select("row.*")


def write(data: Data) -> Iterator[Candidate]:
    """Yield the ways to write rows with distinct keys into sorted buckets."""
    out = data.spare / "native"
    native = lambda: (  # noqa: E731
        data.rows()
        .repartition(BUCKETS, "k")
        .sortWithinPartitions("k")
        .write.option("compression", "zstd")
        .parquet(str(out))
    )
    yield Candidate(
        "repartition + sort + write.parquet",
        native,
        lambda: digest(data.spark.read.parquet(str(out)).select(*COLUMNS)),
        before=lambda: shutil.rmtree(out, ignore_errors=True),
    )
    request = {
        "warehouse": str(data.warehouse),
        "table": TARGET,
        "source": f"{data.files}/*.parquet",
        "engine": "spark",
    }
    again = _restoring(data, TARGET)
    ours: dict[str, tuple[Work, float]] = {
        "write_table": (lambda: spark_jobs.write_table(data.rows(), TARGET), 1.7),
        "ingest of files": (lambda: ingest(request, data.spark), 3.0),
    }
    for name, (work, target) in ours.items():
        answer = lambda: digest(data.written_rows(TARGET))  # noqa: E731
        yield Candidate(name, work, answer, target, again)


def compact(data: Data) -> Iterator[Candidate]:
    """Yield the ways to compact a table in full, each time from the same state."""

    def state() -> object:
        levels = data.table(MERGED).system_table("files").scan().to_arrow()["level"]
        return sorted(levels.to_pylist()), digest(data.written_rows(MERGED))

    table = data.table(MERGED)
    on_spark = spark_jobs.SparkExecutor(data.spark)
    again = _restoring(data, MERGED)
    yield Candidate("threads", lambda: table.compact(executor="threads"), state, before=again)
    yield Candidate("spark", lambda: table.compact(executor=on_spark), state, 1 / 1.15, again)


QUESTIONS: Mapping[str, SparkQuestion] = {
    "read": SparkQuestion("What does reading a compacted table cost beyond plain Parquet?", read),
    "read_column": SparkQuestion("What does reading one column of a table cost?", read_column),
    "read_range": SparkQuestion("What does reading a range of keys cost?", read_range),
    "merge": SparkQuestion("What does merging cost beyond reading the files?", merge),
    "write": SparkQuestion("How fast are rows written to eight sorted buckets?", write),
    "compact": SparkQuestion(
        "What does compaction in Spark's tasks cost compared with threads?", compact
    ),
}


def _drained(name: str, frame: Frame, target: float | None = None) -> Candidate:
    return Candidate(name, lambda: _drain(frame()), lambda: digest(frame()), target)


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _total(frame: Frame) -> object:
    """Return a sum of whole numbers, because a sum of floats would depend on the order of the
    rows.
    """
    found = frame().where("k % 10 = 3").selectExpr("sum(cast(v * 1e6 AS BIGINT))").first()
    assert found is not None
    return found[0]


def _restoring(data: Data, name: str) -> Work:
    """Copy a table; return a function that replaces the table by this copy."""
    place = data.warehouse / "{}.db/{}".format(*name.split("."))
    kept = data.spare / name
    shutil.copytree(place, kept, dirs_exist_ok=True)

    def restore() -> None:
        shutil.rmtree(place)
        shutil.copytree(kept, place)

    return restore
