"""Reads an Iceberg table with as many equality deletes as rows. About half of the deletes match no
row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lakeformat as lake
from benchmarks.iceberg_metadata import Manifest, write_iceberg_table
from benchmarks.question import Question
from lakeformat.iceberg.table import IcebergTable

__all__ = ["QUESTION"]

FILES = 10
COLUMNS = {"k": "long", "v": "long"}
Batches = Iterator[pa.RecordBatch]


def write_table(folder: Path, rows: int) -> None:
    """Write data files of unsorted keys, and as many equality deletes as rows. About half of the
    deletes match no row.
    """
    random, size = np.random.default_rng(7), rows // FILES
    keys = random.permutation(size * FILES)
    deleted = random.permutation(2 * size * FILES)[: size * FILES]
    data, deletes = [], []
    for number in range(FILES):
        part = slice(number * size, (number + 1) * size)
        data.append(_write(folder, f"data-{number}", {"k": keys[part], "v": keys[part] * 7}))
        file = _write(folder, f"deletes-{number}", {"k": deleted[part]})
        deletes.append({**file, "content": 2, "equality_ids": [1]})
    manifests = [Manifest(data), Manifest(deletes, sequence_number=2, is_deletes=True)]
    write_iceberg_table(folder, COLUMNS, (), manifests)


def _write(folder: Path, name: str, columns: dict[str, np.ndarray]) -> dict[str, object]:
    path = folder / f"{name}.parquet"
    fields = [
        pa.field(column, pa.int64(), metadata={"PARQUET:field_id": str(number)})
        for number, column in enumerate(columns, 1)
    ]
    arrays = [pa.array(values) for values in columns.values()]
    table = pa.table(arrays, schema=pa.schema(fields))
    pq.write_table(table, path, row_group_size=1 << 17)
    return {
        "file_path": f"file://{path}",
        "record_count": table.num_rows,
        "file_size_in_bytes": path.stat().st_size,
    }


def opened(folder: Path) -> IcebergTable:
    table = lake.open_table(str(folder))
    assert isinstance(table, IcebergTable)
    return table


def ours(table: IcebergTable, _: Path) -> Callable[[], Batches]:
    """Return a function that reads the table with this library."""
    return lambda: table.scan().to_batches()


def by_numpy(table: IcebergTable, _: Path) -> Callable[[], Batches]:
    """Return a function that sorts all deleted keys, then reads the data files in batches. It
    looks up the keys of each batch among the deleted keys.
    """
    folder = Path(table.location.removeprefix("file://"))

    def work() -> Batches:
        paths = sorted(folder.glob("deletes-*.parquet"))
        deleted = np.sort(np.concatenate([pq.read_table(path)["k"].to_numpy() for path in paths]))
        for path in sorted(folder.glob("data-*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(1 << 17):
                keys = batch.column("k").to_numpy()
                places = np.searchsorted(deleted, keys).clip(max=len(deleted) - 1)
                yield batch.filter(pa.array(deleted[places] != keys))

    return work


def answer(batches: Batches) -> tuple[int, int]:
    """Return the number of rows that are left, and the sum of a column."""
    rows = values = 0
    for batch in batches:
        rows += batch.num_rows
        values += pc.sum(batch.column("v")).as_py() or 0
    return rows, values


QUESTION: Question[IcebergTable, Batches] = Question(
    sentence="What does it cost to delete as many keys by value as a table has rows?",
    rows=10_000_000,
    make_data=write_table,
    open_data=opened,
    candidates={"numpy": by_numpy, "scan.to_batches": ours},
    baseline="numpy",
    answer=answer,
    consume=answer,
)
