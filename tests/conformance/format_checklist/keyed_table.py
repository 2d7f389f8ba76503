"""Primary-key tables put together by hand from the library's parts, because no writer does yet.

Schema, sorted data files, manifest, lists and snapshot are each the library's own; only the order
in which they are called is this file's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.layout import DataFileNames, TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, write_index_manifest
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry, write_manifest
from lakeformat.paimon.metadata.manifest_list import (
    read_manifest_list,
    summarise,
    write_manifest_list,
)
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    publish_snapshot,
    write_hints,
)
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import LocalStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3


@dataclass
class KeyedTable:
    """A primary-key table at a path; every ``commit`` is a snapshot."""

    root: str
    columns: Sequence[tuple[str, str]]
    keys: Sequence[str]
    options: dict[str, str] = field(default_factory=dict)
    partitions: Sequence[str] = ()
    next_sequence_number: int = 0

    def __post_init__(self) -> None:
        self.storage, self.layout = LocalStorage(), TableLayout(self.root)
        fields = tuple(DataField(n, c, parse_type(t)) for n, (c, t) in enumerate(self.columns))
        self.schema = TableSchema(
            id=0,
            fields=fields,
            highest_field_id=len(fields) - 1,
            partition_keys=tuple(self.partitions),
            primary_keys=(*self.partitions, *self.keys),
            options=self.options,
        )
        assert create_schema(self.storage, self.layout, self.schema)

    def open(self) -> lake.Table:
        return lake.open_table(self.root)

    def bucket_of(self, rows: pa.Table) -> list[int]:
        """By the table's own bucket function."""
        types = [self._by_name[key].type for key in self.keys]
        function = bucket_function("default", types, int(self.options["bucket"]))
        return function([rows[key].combine_chunks() for key in self.keys]).tolist()

    def write(
        self,
        rows: Sequence[dict[str, Any]],
        *,
        bucket: int = 0,
        level: int = 0,
        partition: Sequence[Any] = (),
        total_buckets: int | None = None,
    ) -> list[ManifestEntry]:
        """One sorted run of rows, each with its ``kind``, numbered in the order they arrive."""
        numbered = [
            {
                **{name: value for name, value in row.items() if name != "kind"},
                SEQUENCE_NUMBER.name: self.next_sequence_number + position,
                VALUE_KIND.name: row.get("kind", INSERT),
            }
            for position, row in enumerate(rows)
        ]
        self.next_sequence_number += len(rows)
        stored = to_arrow_schema((SEQUENCE_NUMBER, VALUE_KIND, *self.schema.fields))
        table = pa.Table.from_pylist(numbered, schema=stored)
        order = pc.sort_indices(table, [(key, "ascending") for key in self.keys])
        types = [column.type for column in partition_fields(self.schema)]
        framed = frame_row(encode_row(tuple(partition), types), len(types))
        metas = self._write_files(table.take(order), bucket, level, framed)
        total = int(self.options["bucket"]) if total_buckets is None else total_buckets
        return [ManifestEntry(FileKind.ADD, framed, bucket, total, meta) for meta in metas]

    def commit(
        self, entries: Sequence[ManifestEntry], indexes: Sequence[IndexManifestEntry] | None = None
    ) -> Snapshot:
        """Publish entries, and the whole state of the indexes if it is given."""
        head, options = latest_snapshot(self.storage, self.layout), self.schema.table_options
        unique = str(uuid4())
        before = [] if head is None else [head.base_manifest_list, head.delta_manifest_list]
        base = [m for name in before for m in read_manifest_list(self.storage, self.layout, name)]
        delta = []
        if entries:
            name = f"manifest-{unique}-0"
            size = write_manifest(self.storage, self.layout, name, entries, options)
            types = [column.type for column in partition_fields(self.schema)]
            delta = [summarise(name, size, entries, types)]
        lists = {}
        for number, manifests in enumerate((base, delta)):
            name = f"manifest-list-{unique}-{number}"
            size = write_manifest_list(self.storage, self.layout, name, manifests, options)
            lists[name] = size
        index_manifest = head.index_manifest if head else None
        if indexes is not None:
            index_manifest = f"index-manifest-{unique}-0"
            write_index_manifest(self.storage, self.layout, index_manifest, indexes, options)
        added = sum(
            entry.file.row_count * (1 if entry.kind is FileKind.ADD else -1) for entry in entries
        )
        (base_name, base_size), (delta_name, delta_size) = lists.items()
        snapshot = Snapshot(
            id=head.id + 1 if head else 1,
            schema_id=0,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            index_manifest=index_manifest,
            commit_user="checklist",
            commit_identifier=head.id + 1 if head else 1,
            commit_kind=CommitKind.APPEND,
            time_millis=1_700_000_000_000,
            total_record_count=(head.total_record_count if head else 0) + added,
            delta_record_count=added,
            next_row_id=0,
        )
        assert publish_snapshot(self.storage, self.layout, snapshot)
        write_hints(self.storage, self.layout, snapshot.id)
        return snapshot

    @property
    def _by_name(self) -> dict[str, DataField]:
        return {column.name: column for column in self.schema.fields}

    def _write_files(
        self, rows: pa.Table, bucket: int, level: int, partition: bytes
    ) -> list[DataFileMeta]:
        options = self.schema.table_options
        directory = self.layout.bucket_directory(bucket, partition_path(self.schema, partition))
        writer = KeyValueWriter(
            self.storage,
            directory,
            self.schema.fields,
            self.keys,
            options,
            DataFileNames(options, str(uuid4())).next_data,
        )
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.finish(FileOrigin(0, datetime(2024, 1, 1), level=level))
