"""Publishes an overwrite of one partition for Iceberg readers, in a small and in a large table.

Both commits delete 1,000 files and add 10. The small table has no other files, the large one has
99,000 more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.publication import publish_first, publishing_second
from benchmarks.question import Question
from benchmarks.sample_manifest import write_sample_snapshot
from lakeformat.environment import SYSTEM
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise
from lakeformat.paimon.metadata.simple_stats import SimpleStats
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import LocalStorage
from lakeformat.types.types import STRING, DataField, TypeName, atomic

__all__ = ["QUESTION"]

FILES_OF_PARTITION = 1_000
PER_MANIFEST = 10_000
SMALL_PARTITIONS = 1
MILLIS = 1_700_000_000_000
TYPES = [atomic(TypeName.BIGINT), STRING]


def _write(folder: Path, files: int) -> None:
    """Write both tables, published at snapshot 1; snapshot 2 replaces the files of partition 0."""
    sizes = {"large": files // FILES_OF_PARTITION, "small": SMALL_PARTITIONS}
    for name, partitions in sizes.items():
        handle = _handle(folder / name)
        handle.storage.make_directory(handle.layout.root)
        handle.storage.create(handle.layout.schema(0), handle.schema.to_json())
        names = [
            (day, f"data-{day}-{number}.parquet")
            for day in range(max(partitions, 1))
            for number in range(FILES_OF_PARTITION)
        ]
        made = [_entry(FileKind.ADD, *each) for each in names]
        manifests = [
            _manifest(handle, f"manifest-{start}", made[start : start + PER_MANIFEST])
            for start in range(0, len(made), PER_MANIFEST)
        ]
        write_sample_snapshot(handle, 1, [], manifests, time_millis=MILLIS, rows=len(made))
        publish_first(handle)
        changes = [_entry(FileKind.DELETE, *each) for each in names[:FILES_OF_PARTITION]]
        changes += [_entry(FileKind.ADD, 0, f"new-{each}.parquet") for each in range(10)]
        delta = [_manifest(handle, "manifest-changes", changes)]
        rows = 10 - FILES_OF_PARTITION
        write_sample_snapshot(handle, 2, manifests, delta, time_millis=MILLIS + 1, rows=rows)


def _entry(kind: FileKind, day: int, name: str) -> ManifestEntry:
    low, high = _row([1, "a", day]), _row([99, "z", day])
    file = DataFileMeta(
        file_name=name,
        file_size=1_000,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=SimpleStats(low, high, (0, 0, 0)),
    )
    return ManifestEntry(kind, frame_row(encode_row([day], [atomic(TypeName.INT)]), 1), 0, -1, file)


def _row(values: list[Any]) -> bytes:
    return frame_row(encode_row(values, _types()), len(values))


def _types() -> list[Any]:
    return [*TYPES, atomic(TypeName.INT)]


def _manifest(handle: TableHandle, name: str, entries: list[ManifestEntry]) -> ManifestMeta:
    size = write_manifest(handle.storage, handle.layout, name, entries, handle.options)
    return summarise(name, size, entries, [atomic(TypeName.INT)])


def _handle(folder: Path) -> TableHandle:
    schema = TableSchema(
        id=0,
        fields=tuple(
            DataField(place, name, kind)
            for place, (name, kind) in enumerate(zip(("id", "note", "dt"), _types(), strict=True))
        ),
        highest_field_id=2,
        partition_keys=("dt",),
        options={"bucket": "-1", "metadata.iceberg.storage": "table-location"},
    )
    return TableHandle(LocalStorage(), TableLayout(str(folder)), schema, SYSTEM)


def _publishing(data: Path, folder: Path, *, table: str) -> Callable[[], dict[str, str]]:
    return publishing_second(_handle(data / table))


QUESTION: Question[Path, dict[str, str]] = Question(
    sentence="Does the time to publish an overwrite depend only on the changed files?",
    rows=100_000,
    make_data=_write,
    open_data=lambda folder: folder,
    candidates={
        "a table of 100,000 files": partial(_publishing, table="large"),
        "a table of 1,000 files": partial(_publishing, table="small"),
    },
    baseline="a table of 1,000 files",
    answer=lambda counts: counts,
)
