"""Tables of sorted runs to compact, and the floor with which a compaction is compared.

The floor is the unavoidable work: reading all files and writing the result.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.key_runs import KeyRuns
from benchmarks.keyed_table import NAME, VALUES, KeyColumns
from benchmarks.question import Question
from benchmarks.sample_rows import sample_batches
from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS

__all__ = ["Made", "compact", "compaction_question", "distinct_keys", "values_of", "write_table"]

Made: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]
"""A function that reads the rows of the result."""

REPEATING = ["status"]
BASELINE, CANDIDATE = "stream all files + write the result", "table.compact()"


def write_table(
    folder: Path, rows: int, *, key: KeyColumns, runs: KeyRuns, buckets: int = 1
) -> None:
    """Write a table with one commit for each run."""
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("bench")
    table: lake.Table | None = None
    values, start = values_of(rows), 0
    for keys in runs(rows):
        columns, new = key(keys), values.slice(start, len(keys))
        run = pa.table({**columns, **dict(zip(VALUES, new.columns, strict=True))})
        start += len(keys)
        if table is None:
            options = {"bucket": str(buckets), "target-file-size": "1 gb"}
            table = catalog.create_table(NAME, run.schema, primary_key=[*columns], options=options)
        table.write(run)


def values_of(rows: int) -> pa.Table:
    """Return the columns that are not in the key. Their values differ between runs, as in real
    tables.
    """
    return pa.Table.from_batches(sample_batches(rows)).select(VALUES)


def compact(table: Path, folder: Path, *, executor: str = "serial") -> Callable[[], Made]:
    """Return a function that compacts a copy of the table, from the plan to the snapshot."""
    shutil.copytree(table, folder / "wh", copy_function=os.link)

    def work() -> Made:
        opened = lake.open_catalog(str(folder / "wh")).table(NAME)
        opened.compact(executor=executor)
        return lambda: opened.scan(["k"]).to_batches()

    return work


def floor(table: Path, folder: Path) -> Callable[[], Made]:
    """Return a function that does the work of a compaction with pyarrow alone: it reads every file,
    then writes the rows that are kept.

    It reads all columns, system columns included, with repeated texts as dictionaries. It writes
    the file that the compaction writes, with its row groups, encodings and checksums.
    """
    files = [*table.glob("**/bucket-*/*.parquet")]
    compact(table, folder)()
    made = set((folder / "wh").glob("**/bucket-*/*.parquet"))
    new = [path for path in made if not (table / path.relative_to(folder / "wh")).exists()]
    # If the compaction wrote no file, the floor writes none.
    result = [batch for path in new for batch in _read(path)]
    encoded = _dictionary_columns(new[0]) if new else []

    def work() -> Made:
        for path in files:
            for _ in _read(path):
                pass
        path = folder / "result.parquet"
        if result:
            _write(result, path, encoded)
        return lambda: (
            batch
            for each in ([path] if result else files)
            for batch in pq.ParquetFile(each).iter_batches(BATCH_ROWS, columns=["k"])
        )

    return work


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    yield from pq.ParquetFile(path, read_dictionary=REPEATING).iter_batches(BATCH_ROWS)


def _dictionary_columns(path: Path) -> list[str]:
    group = pq.read_metadata(path).row_group(0)
    chunks = map(group.column, range(group.num_columns))
    return [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page]


def distinct_keys(made: Made) -> tuple[int, int]:
    """Return the number of different keys, and the total length of all keys as texts."""
    keys = pa.Table.from_batches(made()).column("k")
    return len(keys.unique()), int(pc.sum(pc.binary_length(keys.cast(pa.string()))).as_py())


def compaction_question(
    sentence: str, *, key: KeyColumns, runs: KeyRuns, target: float
) -> Question[Path, Made]:
    """Return the question that compares full compaction of one bucket on one core with the
    floor.
    """
    return Question(
        sentence=sentence,
        rows=10_000_000,
        make_data=lambda folder, rows: write_table(folder, rows, key=key, runs=runs),
        open_data=lambda folder: folder,
        candidates={BASELINE: floor, CANDIDATE: partial(compact, executor="serial")},
        baseline=BASELINE,
        answer=distinct_keys,
        targets={CANDIDATE: target},
    )


def _write(batches: list[pa.RecordBatch], path: Path, encoded: list[str]) -> None:
    rows = pa.Table.from_batches(batches)
    with (
        pa.OSFile(str(path), "wb") as stream,
        pq.ParquetWriter(
            stream,
            rows.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=encoded,
            store_decimal_as_integer=True,
            write_page_checksum=True,
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
    with path.open("rb") as written:
        os.fsync(written.fileno())
