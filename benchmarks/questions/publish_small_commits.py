"""Publishes commits that change few files, to tables whose layout does not narrow the search for
these files.

One table has no partitions, and a commit replaces 100 of its files, which are in the manifest that
is read last. In the other tables, each data file has deleted rows, and a commit deletes one more
row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.publication import publish_first, publishing_second
from benchmarks.question import Question
from benchmarks.sample_manifest import write_sample_snapshot
from lakeformat.environment import SYSTEM
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, write_index_manifest
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise
from lakeformat.paimon.metadata.simple_stats import EMPTY_STATS
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.write.vector_file import write_vector_file
from lakeformat.storage import LocalStorage
from lakeformat.types.types import DataField, TypeName, atomic

__all__ = ["QUESTION"]

FILES_OF_PARTITION = 1_000
PER_MANIFEST = 10_000
REPLACED = 100
MILLIS = 1_700_000_000_000
INT = atomic(TypeName.INT)


def _write(folder: Path, files: int) -> None:
    """Write the tables with two snapshots, of which the first is published."""
    partitions = max(files // FILES_OF_PARTITION, 1)
    _write_plain(folder / "plain", partitions * FILES_OF_PARTITION)
    _write_vectors(folder / "vectors", partitions)
    _write_vectors(folder / "small", 1)


def _write_plain(folder: Path, files: int) -> None:
    handle = _started(folder)
    names = [f"data-{number}.parquet" for number in range(files)]
    added = [_entry(FileKind.ADD, name) for name in names]
    changes = [_entry(FileKind.DELETE, name) for name in names[-REPLACED:]]
    _snapshots(handle, added, [*changes, _entry(FileKind.ADD, "new.parquet")])


def _write_vectors(folder: Path, partitions: int) -> None:
    """Write a table with two snapshots. In the first one, row 0 of each file is deleted. The second
    one also deletes row 1 of one file.
    """
    handle = _started(folder)
    names = {
        day: [f"data-{day}-{number}.parquet" for number in range(FILES_OF_PARTITION)]
        for day in range(partitions)
    }
    index = [_index(handle, day, {name: [0] for name in some}) for day, some in names.items()]
    changed = _index(handle, 0, {name: [0] for name in names[0]} | {names[0][0]: [0, 1]})
    for number, entries in (1, index), (2, [changed, *index[1:]]):
        write_index_manifest(
            handle.storage, handle.layout, f"index-manifest-{number}", entries, handle.options
        )
    added = [_entry(FileKind.ADD, name, day) for day, some in names.items() for name in some]
    _snapshots(handle, added, [], "index-manifest-")


def _snapshots(
    handle: TableHandle,
    added: Sequence[ManifestEntry],
    changes: Sequence[ManifestEntry],
    index: str | None = None,
) -> None:
    base = [
        _manifest(handle, f"manifest-{start}", added[start : start + PER_MANIFEST])
        for start in range(0, len(added), PER_MANIFEST)
    ]
    delta = [_manifest(handle, "manifest-changes", changes)] if changes else []
    first = None if index is None else f"{index}1"
    write_sample_snapshot(
        handle, 1, [], base, time_millis=MILLIS, rows=len(added), index_manifest=first
    )
    publish_first(handle)
    write_sample_snapshot(
        handle,
        2,
        base,
        delta,
        time_millis=MILLIS + 1,
        index_manifest=None if index is None else f"{index}2",
    )


def _index(handle: TableHandle, day: int, rows: dict[str, list[int]]) -> IndexManifestEntry:
    """Write the index file of a partition, with the deleted rows of its data files."""
    vectors = {name: DeletionVector.of(numbers) for name, numbers in rows.items()}
    return write_vector_file(handle, _row(day), 0, vectors)


def _entry(kind: FileKind, name: str, day: int | None = None) -> ManifestEntry:
    file = DataFileMeta(
        file_name=name,
        file_size=1_000,
        row_count=10,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=EMPTY_STATS,
    )
    return ManifestEntry(kind, _row(day), 0, -1, file)


def _row(day: int | None) -> bytes:
    values, types = ([], []) if day is None else ([day], [INT])
    return frame_row(encode_row(values, types), len(types))


def _manifest(handle: TableHandle, name: str, entries: Sequence[ManifestEntry]) -> ManifestMeta:
    size = write_manifest(handle.storage, handle.layout, name, entries, handle.options)
    return summarise(name, size, entries, [INT] if handle.schema.partition_keys else [])


def _started(folder: Path) -> TableHandle:
    handle = _handle(folder)
    handle.storage.make_directory(handle.layout.root)
    handle.storage.create(handle.layout.schema(0), handle.schema.to_json())
    return handle


def _handle(folder: Path) -> TableHandle:
    options = {"bucket": "-1", "metadata.iceberg.storage": "table-location"}
    schema = TableSchema(
        id=0,
        fields=(DataField(0, "id", INT), DataField(1, "dt", INT)),
        highest_field_id=1,
        options=options,
    )
    if folder.name != "plain":
        vectors = {"deletion-vectors.enabled": "true", "metadata.iceberg.format-version": "3"}
        schema = replace(schema, partition_keys=("dt",), options={**options, **vectors})
    return TableHandle(LocalStorage(), TableLayout(str(folder)), schema, SYSTEM)


def _publishing(data: Path, folder: Path, *, table: str) -> Callable[[], dict[str, str]]:
    return publishing_second(_handle(data / table))


QUESTION: Question[Path, dict[str, str]] = Question(
    sentence="How long does it take to publish a small commit to a table of 100,000 files?",
    rows=100_000,
    make_data=_write,
    open_data=lambda folder: folder,
    candidates={
        "100 replaced files, no partitions": partial(_publishing, table="plain"),
        "one deleted row, 100,000 files with vectors": partial(_publishing, table="vectors"),
        "one deleted row, 1,000 files with vectors": partial(_publishing, table="small"),
    },
    baseline="one deleted row, 1,000 files with vectors",
    answer=lambda counts: counts,
)
