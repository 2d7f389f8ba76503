"""Tables of sorted runs to compact, and the floor: reading all files and writing the result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.keyed_table import NAME, SEED, VALUES, KeyColumns
from benchmarks.question import Question
from benchmarks.sample_rows import sample_batches
from lakeformat.datafile.reader import BATCH_ROWS
from lakeformat.datafile.rolling_writer import ROW_GROUP_ROWS

__all__ = ["Made", "compact", "compaction_question", "distinct_keys", "write_table"]

Numbers: TypeAlias = npt.NDArray[np.int64]
Made: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]
"""Reads the rows that came of it."""

BASELINE, CANDIDATE = "stream all files + write the result", "table.compact()"


def write_table(
    folder: Path, rows: int, *, key: KeyColumns, runs: int, overlap: float, buckets: int = 1
) -> None:
    """So many runs; ``overlap`` of the keys of each are in a run before, below 0 no run meets
    another.
    """
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("bench")
    table: lake.Table | None = None
    for keys in _runs(rows, runs, overlap):
        columns = key(keys)
        values = pa.Table.from_batches(sample_batches(len(keys))).select(VALUES)
        run = pa.table({**columns, **dict(zip(VALUES, values.columns, strict=True))})
        if table is None:
            options = {"bucket": str(buckets), "target-file-size": "1 gb"}
            table = catalog.create_table(NAME, run.schema, primary_key=[*columns], options=options)
        table.write(run)


def compact(table: Path, folder: Path, *, executor: str = "serial") -> Callable[[], Made]:
    """What a user calls, from the plan to the published snapshot."""
    shutil.copytree(table, folder / "wh", copy_function=os.link)

    def work() -> Made:
        opened = lake.open_catalog(str(folder / "wh")).table(NAME)
        opened.compact(executor=executor)
        return lambda: opened.scan(["k"]).to_batches()

    return work


def floor(table: Path, folder: Path) -> Callable[[], Made]:
    """By pyarrow alone: every file from one end to the other, then the rows that are left."""
    files = [*table.glob("**/bucket-*/*.parquet")]
    compact(table, folder)()
    made = set((folder / "wh").glob("**/bucket-*/*.parquet"))
    new = [path for path in made if not (table / path.relative_to(folder / "wh")).exists()]
    # Where nothing was written, nothing is written here.
    result = [batch for path in new for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS)]

    def work() -> Made:
        for path in files:
            for _ in pq.ParquetFile(path).iter_batches(BATCH_ROWS):
                pass
        path = folder / "result.parquet"
        if result:
            _write(result, path)
        return lambda: (
            batch
            for each in ([path] if result else files)
            for batch in pq.ParquetFile(each).iter_batches(BATCH_ROWS, columns=["k"])
        )

    return work


def distinct_keys(made: Made) -> tuple[int, int]:
    """How many keys there are, and the sum of their hashes."""
    keys = pa.Table.from_batches(made()).column("k")
    return len(keys.unique()), int(pc.sum(pc.binary_length(keys.cast(pa.string()))).as_py())


def compaction_question(
    sentence: str, *, key: KeyColumns, runs: int, overlap: float, target: float
) -> Question[Path, Made]:
    """Full compaction of one bucket on one core against the floor."""
    return Question(
        sentence=sentence,
        rows=10_000_000,
        make_data=lambda folder, rows: write_table(
            folder, rows, key=key, runs=runs, overlap=overlap
        ),
        open_data=lambda folder: folder,
        candidates={BASELINE: floor, CANDIDATE: partial(compact, executor="serial")},
        baseline=BASELINE,
        answer=distinct_keys,
        targets={CANDIDATE: target},
    )


def _write(batches: list[pa.RecordBatch], path: Path) -> None:
    rows = pa.Table.from_batches(batches)
    with (
        pa.OSFile(str(path), "wb") as stream,
        pq.ParquetWriter(
            stream,
            rows.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=["status"],
            store_decimal_as_integer=True,
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _runs(rows: int, runs: int, overlap: float) -> Iterator[Numbers]:
    size = rows // runs
    if overlap < 0:
        for number in range(runs):
            yield np.arange(number * size, (number + 1) * size)
        return
    random = np.random.default_rng(SEED)
    again = int(size * overlap)
    numbers = random.permutation(size + (runs - 1) * (size - again))
    known = size
    yield np.sort(numbers[:size])
    for _ in range(runs - 1):
        updated = random.choice(numbers[:known], again, replace=False)
        added = numbers[known : known + size - again]
        yield np.sort(np.concatenate([updated, added]))
        known += len(added)
