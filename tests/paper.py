"""Commits that name data files which do not exist: a commit decides by its messages alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakeformat.environment import Environment
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    IndexManifestEntry,
    read_index_manifest,
)
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.schema_file import create_schema, read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, read_snapshot
from lakeformat.paimon.partition import partition_fields, partition_texts
from lakeformat.paimon.partition_filter import some_partitions
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import MemoryStorage
from lakeformat.storage.base import Storage
from lakeformat.tables.commit_id import CommitId
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

_numbers = itertools.count()
_NO_WAIT = Environment(sleep_seconds=lambda seconds: None)


def paper_table(
    *,
    keyed: bool = False,
    partitioned: bool = False,
    options: Mapping[str, str] | None = None,
    storage: Storage | None = None,
) -> TableHandle:
    """A table of ``id`` and ``note``, maybe with the key ``id`` and the partition column ``dt``."""
    columns = [("id", "INT NOT NULL"), ("note", "STRING")]
    columns += [("dt", "STRING NOT NULL")] if partitioned else []
    partitions = ("dt",) if partitioned else ()
    fields = tuple(DataField(n, name, parse_type(t)) for n, (name, t) in enumerate(columns))
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=len(fields) - 1,
        partition_keys=partitions,
        primary_keys=(*partitions, "id") if keyed else (),
        options={**({"bucket": "2"} if keyed else {}), **(options or {})},
    )
    storage = storage or MemoryStorage(f"paper-{next(_numbers)}")
    layout = TableLayout("wh/shop.db/orders")
    assert create_schema(storage, layout, schema)
    return TableHandle(storage, layout, read_schema(storage, layout, 0), _NO_WAIT)


def with_options(handle: TableHandle, options: Mapping[str, str]) -> TableHandle:
    """The same table with other options, and the same number of buckets."""
    bucket = {k: v for k, v in handle.schema.options.items() if k in ("bucket", "bucket-key")}
    return replace(handle, schema=replace(handle.schema, options={**bucket, **options}))


def file(
    name: str, *, rows: int = 10, level: int = 0, keys: tuple[int, int] = (0, 9)
) -> DataFileMeta:
    """A data file without content."""
    int_type = parse_type("INT NOT NULL")
    least, most = (frame_row(encode_row((key,), [int_type]), 1) for key in keys)
    return DataFileMeta(
        file_name=name,
        file_size=1000,
        row_count=rows,
        min_sequence_number=0,
        max_sequence_number=rows - 1,
        schema_id=0,
        min_key=least,
        max_key=most,
        level=level,
        file_source=FileSource.APPEND if level == 0 else FileSource.COMPACT,
        delete_row_count=0,
    )


def message(
    handle: TableHandle,
    *new: DataFileMeta,
    dt: str | None = None,
    bucket: int = 0,
    total_buckets: int | None = None,
    **increments: Sequence[object],
) -> CommitMessage:
    """The changes of one bucket; ``increments`` are named as in ``CommitMessage``."""
    types = [field.type for field in partition_fields(handle.schema)]
    values = () if dt is None else (dt,)
    made = {name: tuple(files) for name, files in increments.items()}
    return CommitMessage(
        partition=frame_row(encode_row(values, types), len(types)),
        bucket=bucket,
        total_buckets=total_buckets,
        new_files=new,
        **made,
    )


def commit(
    handle: TableHandle,
    *messages: CommitMessage,
    user: str | None = None,
    overwrite: Mapping[str, str] | None = None,
    **options: object,
) -> CommitReport:
    """Commit messages; with ``user`` as commit 1 of that user."""
    return commit_messages(
        handle,
        messages,
        CommitOptions(commit=CommitId(user, 1) if user else None, **options),
        overwrite=None if overwrite is None else some_partitions(handle.schema, [overwrite]),
    )


def head(handle: TableHandle) -> Snapshot | None:
    """The newest snapshot."""
    return latest_snapshot(handle.storage, handle.layout)


def live(handle: TableHandle, snapshot: int | None = None) -> list[str]:
    """The files of a snapshot, of the newest if none is named, as ``[partition/]name@level``."""
    found = (
        head(handle) if snapshot is None else read_snapshot(handle.storage, handle.layout, snapshot)
    )
    return [] if found is None else sorted(_shown(handle, e) for e in plan_files(handle, found))


def _shown(handle: TableHandle, entry: ManifestEntry) -> str:
    place = "".join(f"{text}/" for text in partition_texts(handle.schema, entry.partition))
    level = f"@{entry.file.level}" if entry.file.level else ""
    return f"{place}{entry.file.file_name}{level}"


def vectors(
    handle: TableHandle, name: str, *data_files: str, bucket: int = 0, dt: str | None = None
) -> IndexManifestEntry:
    """An index file with the deletion vectors of some data files."""
    return IndexManifestEntry(
        partition=message(handle, dt=dt).partition,
        bucket=bucket,
        index_type=DELETION_VECTORS,
        file_name=name,
        file_size=100,
        row_count=len(data_files),
        ranges=tuple(DeletionVectorRange(each, 1, 22, 1) for each in data_files),
    )


def index_files(handle: TableHandle) -> list[str]:
    """The index files of the newest snapshot."""
    found = head(handle)
    name = found.index_manifest if found else None
    entries = read_index_manifest(handle.storage, handle.layout, name) if name else []
    return sorted(entry.file_name for entry in entries)


def moved(meta: DataFileMeta, level: int) -> DataFileMeta:
    """The same file on another level."""
    return replace(meta, level=level)
