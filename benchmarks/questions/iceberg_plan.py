"""Plans a full scan of an Iceberg table; ``iceberg_plan_peer.py`` compares with PyIceberg."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lakeformat as lake
from benchmarks.question import Question
from benchmarks.sample_iceberg import write_metadata_table
from lakeformat.iceberg.metadata.avro_records import decode_by_id, read_record_file
from lakeformat.iceberg.read.data_file import DataFile, FileSplit
from lakeformat.iceberg.read.delete_index import file_format
from lakeformat.iceberg.table import IcebergTable

__all__ = ["QUESTION"]


def opened(folder: Path) -> IcebergTable:
    table = lake.open_table(str(folder))
    assert isinstance(table, IcebergTable)
    return table


def by_record(table: IcebergTable, _: Path) -> Callable[[], list[FileSplit]]:
    """Return a function that decodes each entry with fastavro, and makes a split of it."""

    def work() -> list[FileSplit]:
        snapshot = table.snapshots()[-1].snapshot_id
        folder = Path(table.location.removeprefix("file://"), "metadata")
        manifests = sorted(folder.glob("*-m*.avro"))
        records = (
            record
            for path in manifests
            for some in decode_by_id(read_record_file(path.read_bytes(), path.name))
            for record in some
        )
        return [_split(snapshot, record["data_file"]) for record in records]

    return work


def _split(snapshot_id: int, file: dict[str, object]) -> FileSplit:
    path, rows, size = file["file_path"], file["record_count"], file["file_size_in_bytes"]
    assert isinstance(path, str) and isinstance(rows, int) and isinstance(size, int)  # noqa: PT018
    return FileSplit(snapshot_id, DataFile(path, file_format("parquet", path), rows, size, 1))


def by_column(table: IcebergTable, _: Path) -> Callable[[], list[FileSplit]]:
    """Return a function that plans with columns, as every scan does."""
    return lambda: table.scan().splits()


def by_column_filtered(table: IcebergTable, _: Path) -> Callable[[], list[FileSplit]]:
    """Return a function that plans with a condition on two text columns. The condition excludes no
    file.
    """
    return lambda: table.scan(where="url >= '0' and referrer <= 'g'").splits()


QUESTION: Question[IcebergTable, list[FileSplit]] = Question(
    sentence="How much faster is an Iceberg table planned by column than by record?",
    rows=100_000,
    make_data=write_metadata_table,
    open_data=opened,
    candidates={
        "record by record": by_record,
        "scan.splits": by_column,
        "scan.splits, filtered": by_column_filtered,
    },
    baseline="record by record",
    answer=lambda splits: sorted((each.file.path, each.file.size_bytes) for each in splits),
    targets={"scan.splits": 3.0, "scan.splits, filtered": 3.0},
)
