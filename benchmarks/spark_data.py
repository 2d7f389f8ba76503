"""The data of the questions about Spark: one session, files and tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake
import spark_jobs
from benchmarks.sample_rows import SCHEMA, sample_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BUCKETS",
    "COLUMNS",
    "COMPACTED",
    "MERGED",
    "TARGET",
    "Data",
    "digest",
    "made_data",
    "overlapping_parts",
]

BUCKETS = 8
FILES = 8
COMPACTED, MERGED, TARGET = "bench.compacted", "bench.merged", "bench.target"
COLUMNS = SCHEMA.names
SEED = 20_240_301


@dataclass(frozen=True, slots=True)
class Data:
    """The session, and the locations of files and tables."""

    spark: SparkSession
    warehouse: Path
    files: Path
    """Plain files of unsorted rows whose keys all differ."""
    spare: Path
    """A folder for files that a candidate writes outside tables."""

    def table(self, name: str) -> lake.Table:
        return lake.open_catalog(str(self.warehouse)).table(name)

    def rows(self) -> DataFrame:
        return self.spark.read.parquet(str(self.files))

    def paths_of(self, name: str) -> list[str]:
        """Return the paths of all data files of a table, including those that a read must merge."""
        files = self.table(name).system_table("files").scan().to_arrow()
        found: list[str] = files["file_path"].to_pylist()
        return found

    def written_rows(self, name: str) -> DataFrame:
        """Return the rows in a table's data files, read by Spark without a merge."""
        return self.spark.read.parquet(*self.paths_of(name)).select(*COLUMNS)


def digest(frame: DataFrame) -> tuple[int, int]:
    """Return the number of rows and the sum of their hashes.

    Frames with equal rows have equal digests, in any order of the rows.
    """
    from pyspark.sql import functions as sql

    hashed = sql.xxhash64(*(sql.col(name) for name in COLUMNS)).cast("decimal(38,0)")
    found = frame.agg(sql.count(sql.lit(1)), sql.sum(hashed)).first()
    assert found is not None
    return int(found[0]), int(found[1])


@contextmanager
def made_data(rows: int) -> Iterator[Data]:
    """Yield a session, plain files, and three tables: one is compacted, one has eight overlapping
    runs, and one is empty.
    """
    with tempfile.TemporaryDirectory(prefix="lake-bench-spark-") as folder:
        warehouse, files, spare = (Path(folder, name) for name in ("warehouse", "files", "spare"))
        files.mkdir()
        spare.mkdir()
        spark = spark_jobs.session("bench", master="local[2]", warehouse=str(warehouse))
        try:
            catalog = lake.open_catalog(str(warehouse))
            catalog.create_database("bench")
            options = {"bucket": str(BUCKETS), "target-file-size": "1 gb"}
            for name in (COMPACTED, MERGED, TARGET):
                catalog.create_table(name, _SCHEMA, primary_key=["k"], options=options)
            for number, part in enumerate(_distinct(rows)):
                pq.write_table(part, files / f"part-{number}.parquet", compression="zstd")
            for part in overlapping_parts(rows):
                for name in (COMPACTED, MERGED):
                    catalog.table(name).write(part)
            catalog.table(COMPACTED).compact()
            yield Data(spark, warehouse, files, spare)
        finally:
            spark.stop()


_SCHEMA = SCHEMA.set(0, pa.field("k", pa.int64(), nullable=False))


def _distinct(rows: int) -> Iterator[pa.Table]:
    """Yield unsorted parts that share no key."""
    size = rows // FILES
    keys = np.random.default_rng(SEED).permutation(size * FILES)
    for number, values in enumerate(_values(size)):
        yield _with_keys(values, keys[number * size : (number + 1) * size])


def overlapping_parts(rows: int) -> Iterator[pa.Table]:
    """Yield the rows of each run, unsorted. Each run, except the first, repeats half of the keys
    of the run before it.
    """
    size = rows // FILES
    random = np.random.default_rng(SEED)
    for number, values in enumerate(_values(size)):
        yield _with_keys(values, random.permutation(size) + number * size // 2)


def _values(size: int) -> Iterator[pa.Table]:
    rows = pa.Table.from_batches(sample_batches(size * FILES))
    for number in range(FILES):
        yield rows.slice(number * size, size)


def _with_keys(rows: pa.Table, keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    return rows.set_column(0, _SCHEMA.field("k"), pa.array(keys))
