"""Iceberg tables of small files to compact, and the floor with which a compaction is compared.

The floor is the unavoidable work: reading all rows and writing them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.question import Question
from benchmarks.sample_rows import SCHEMA, sample_batches
from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.iceberg.table import IcebergTable

__all__ = [
    "FILE_ROWS",
    "LARGER_FILE_ROWS",
    "Made",
    "compaction_question",
    "keep",
    "opened",
    "restore",
    "sums",
    "write_small_files",
]

Made: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]
"""A function that reads the rows of the result."""
Change: TypeAlias = Callable[[pa.Table], pa.Table]
"""Applies the change of a table to rows that the floor has read from its data files."""

BASELINE, CANDIDATE = "read all + write all", "table.compact()"
NAME = "bench.orders"
REPEATING = ["status"]
FILE_ROWS = 70_000
"""The number of rows in a file of about 2.3 MB."""
LARGER_FILE_ROWS = 120_000
"""The number of rows in a file of about 4 MB."""
FILES_PER_COMMIT = 10
"""The number of files in a commit, as if ten tasks of a job wrote at the same time."""
GROUP_BYTES = 128 << 20


def write_small_files(
    folder: Path, rows: int, name: str = NAME, file_rows: int = FILE_ROWS
) -> IcebergTable:
    """Write a table of small files, at least two of them."""
    catalog = lake.open_catalog(str(folder), format="iceberg")
    catalog.create_database("bench", exist_ok=True)
    found = catalog.create_table(name, SCHEMA)
    assert isinstance(found, IcebergTable)
    made = pa.Table.from_batches(sample_batches(max(rows, 2 * file_rows)))
    starts = range(0, len(made) - file_rows + 1, file_rows)
    for first in range(0, len(starts), FILES_PER_COMMIT):
        messages = []
        for start in starts[first : first + FILES_PER_COMMIT]:
            with found.new_writer() as writer:
                writer.write(made.slice(start, file_rows))
                messages += writer.prepare()
        found.commit(messages)
    return found


def opened(folder: Path, name: str = NAME) -> IcebergTable:
    """Open a table of a folder."""
    found = lake.open_catalog(str(folder), format="iceberg").table(name)
    assert isinstance(found, IcebergTable)
    return found


def compaction_question(
    sentence: str,
    *,
    rows: int,
    target: float,
    change: Callable[[IcebergTable], object] = lambda table: None,
    floor_change: Change = lambda rows: rows,
    how: Mapping[str, Any] = MappingProxyType({"strategy": "full"}),
    file_rows: int = FILE_ROWS,
) -> Question[Path, Made]:
    """Return the question that compares a compaction on one core with the floor.

    ``change`` changes the table after it is written, for example by deletes. ``floor_change``
    has the same effect on the rows that the floor reads from the data files. ``how`` are the
    arguments of the compaction.
    """

    def make(folder: Path, count: int) -> None:
        change(write_small_files(folder, count, file_rows=file_rows))
        keep(folder)

    return Question(
        sentence=sentence,
        rows=rows,
        make_data=make,
        open_data=lambda folder: folder,
        candidates={
            BASELINE: lambda folder, work: _floor(folder, work, floor_change),
            CANDIDATE: lambda folder, work: _compact(folder, how),
        },
        baseline=BASELINE,
        answer=lambda made: sums(made()),
        targets={CANDIDATE: target},
    )


def _compact(folder: Path, how: Mapping[str, Any]) -> Callable[[], Made]:
    """Restore the table as it was written; return a function that compacts it up to the published
    snapshot.
    """
    restore(folder)

    def work() -> Made:
        table = opened(folder)
        table.compact(**how, executor="serial")
        return lambda: table.scan().to_batches()

    return work


def keep(folder: Path) -> None:
    """Record the files of a table, for ``restore``."""
    (folder / "kept").write_text("\n".join(str(path) for path in _files(folder)))


def restore(folder: Path) -> None:
    """Delete the files of earlier compactions and the version hint, so that the kept metadata file
    with the highest number is the current one.
    """
    kept = {Path(line) for line in (folder / "kept").read_text().splitlines()}
    for path in {*_files(folder)} - kept:
        path.unlink()
    (folder / "bench" / "orders" / "metadata" / "version-hint.text").unlink(missing_ok=True)


def _files(folder: Path) -> Iterator[Path]:
    directory = folder / "bench"
    return (path for path in directory.rglob("*") if path.suffix != ".text" and path.is_file())


def _floor(folder: Path, work_folder: Path, change: Change) -> Callable[[], Made]:
    """Return a function that does the work of a compaction with pyarrow alone, with the codec of
    this library's files.
    """
    kept = (Path(line) for line in (folder / "kept").read_text().splitlines())
    found = [path for path in kept if path.suffix == ".parquet" and "delete" not in path.name]
    path = work_folder / "result.parquet"

    def work() -> Made:
        with pa.OSFile(str(path), "wb") as stream:
            writer: pq.ParquetWriter | None = None
            for rows in _groups(found):
                current = change(rows)
                writer = writer or _writer(stream, current.schema)
                writer.write_table(current, row_group_size=len(current))
            assert writer is not None
            writer.close()
        with path.open("rb") as written:
            os.fsync(written.fileno())
        return lambda: pq.ParquetFile(path).iter_batches(BATCH_ROWS)

    return work


def _groups(paths: list[Path]) -> Iterator[pa.Table]:
    """Yield the rows of all files in groups of about 128 MB in memory."""
    held: list[pa.RecordBatch] = []
    for path in paths:
        held += pq.ParquetFile(path).iter_batches(BATCH_ROWS)
        if sum(each.nbytes for each in held) >= GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _writer(stream: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        compression_level=3,
        use_dictionary=REPEATING,
        store_decimal_as_integer=True,
        write_page_checksum=True,
        store_schema=False,
    )


def sums(batches: Iterator[pa.RecordBatch]) -> tuple[int, int, int]:
    """Return the number of rows, the sum of their keys, and the total length of their texts."""
    rows = keys = texts = 0
    for batch in batches:
        rows += batch.num_rows
        keys += pc.sum(batch.column("k")).as_py()
        texts += pc.sum(pc.binary_length(batch.column("s"))).as_py()
    return rows, keys, texts
