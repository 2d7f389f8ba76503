# SPDX-License-Identifier: Apache-2.0
"""Reads manifests: the entries of data files or delete files of one partition spec, as Arrow
tables.

Each table has the columns below, and ``partition`` with the fields of the spec. Sequence numbers,
snapshot ids and first row ids that an entry inherits from its manifest are filled in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.avro.avro_container import NotPlainError, join_blocks
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.avro_records import (
    RecordFile,
    decode_by_id,
    has_int,
    partition_key,
    read_record_file,
)
from lakeformat.iceberg.metadata.columnar_manifest import columnar_entries
from lakeformat.iceberg.metadata.inherited_numbers import (
    ADDED,
    DELETED,
    EXISTING,
    with_inherited,
)
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.physical_values import values_to_arrow
from lakeformat.iceberg.metadata.record_columns import column_of
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import Field, PrimitiveType, StructType
from lakeformat.tables.json_file import RESTORE

__all__ = [
    "ADDED",
    "DATA",
    "DELETED",
    "EQUALITY_DELETES",
    "EXISTING",
    "POSITION_DELETES",
    "PUFFIN",
    "entry_schema",
    "live_entries",
    "read_each",
    "read_entries",
]

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""The values of ``content``. A deletion vector is a position delete in a Puffin file."""
PUFFIN = "PUFFIN"
"""The value of ``file_format`` for deletion vectors."""

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())
_ENTRY = (
    pa.field("status", pa.int32(), nullable=False),
    pa.field("snapshot_id", pa.int64()),
    pa.field("sequence_number", pa.int64()),
    pa.field("file_sequence_number", pa.int64()),
)
_FILE = (
    pa.field("content", pa.int32(), nullable=False),
    pa.field("file_path", pa.string(), nullable=False),
    pa.field("file_format", pa.string(), nullable=False),
    pa.field("record_count", pa.int64(), nullable=False),
    pa.field("file_size_in_bytes", pa.int64(), nullable=False),
    pa.field("column_sizes", _COUNTS),
    pa.field("value_counts", _COUNTS),
    pa.field("null_value_counts", _COUNTS),
    pa.field("nan_value_counts", _COUNTS),
    pa.field("lower_bounds", _BOUNDS),
    pa.field("upper_bounds", _BOUNDS),
    pa.field("key_metadata", pa.binary()),
    pa.field("split_offsets", pa.list_(pa.int64())),
    pa.field("equality_ids", pa.list_(pa.int32())),
    pa.field("sort_order_id", pa.int32()),
    pa.field("first_row_id", pa.int64()),
    pa.field("referenced_data_file", pa.string()),
    pa.field("content_offset", pa.int64()),
    pa.field("content_size_in_bytes", pa.int64()),
)
_SPEC_ID = pa.field("spec_id", pa.int32(), nullable=False)
_DEFAULTS = {"content": DATA}
_MANY = 32
"""Fewer entries than this are decoded one by one, which is then faster."""
_SMALL_BYTES = 4 << 20
"""The largest total size, decompressed and in bytes, of manifests that are decoded together."""
_MOST_TOGETHER = 100
_ALIKE = ("partition_spec_id", "content")
"""Manifests are decoded together only if they have the same values in these columns of the manifest
list.
"""
_KINDS = ("added", "existing", "deleted")


def entry_schema(partition: StructType) -> pa.Schema:
    """Return the Arrow schema of entries of one partition spec."""
    return pa.schema([*_ENTRY, _SPEC_ID, pa.field("partition", to_arrow_type(partition)), *_FILE])


def read_entries(
    places: FilePlaces,
    metadata: TableMetadata,
    manifests: pa.Table,
    statistics_of: Collection[int] | None = None,
) -> dict[int, pa.Table]:
    """Return the entries of manifests as one table for each partition spec, by spec id.

    ``manifests`` are rows of a manifest list; entries keep that order. ``statistics_of`` lists the
    ids of the columns whose statistics are needed, by default all; statistics of more columns may
    be returned. Raise ``CorruptTableError`` for a damaged manifest, and ``UnsupportedError`` for
    encrypted files.
    """
    parts: dict[int, list[pa.Table]] = {}
    for spec_id, found in read_each(places, metadata, manifests, statistics_of):
        parts.setdefault(spec_id, []).append(found)
    return {spec_id: pa.concat_tables(tables) for spec_id, tables in parts.items()}


def read_each(
    places: FilePlaces,
    metadata: TableMetadata,
    manifests: pa.Table,
    statistics_of: Collection[int] | None = None,
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the spec id and the entries of one manifest after the other.

    Consecutive small manifests of one spec may be yielded as one table. Arguments and errors as for
    ``read_entries``.
    """
    specs: dict[int, _Spec] = {}
    waiting: list[_UnpackedManifest] = []
    for listed in manifests.to_pylist():
        spec_id = listed["partition_spec_id"]
        if spec_id not in specs:
            specs[spec_id] = _spec_of(places, metadata, listed)
        uri = listed["manifest_path"]
        found = _UnpackedManifest(listed, read_record_file(places.read(uri), uri))
        _refuse_days(found.file, specs[spec_id])
        if waiting and not _is_like(found, waiting):
            last = waiting[0].listed["partition_spec_id"]
            yield last, _read_like(waiting, specs[last], statistics_of)
            waiting = []
        waiting.append(found)
    if waiting:
        last = waiting[0].listed["partition_spec_id"]
        yield last, _read_like(waiting, specs[last], statistics_of)


def live_entries(entries: pa.Table) -> pa.Table:
    """Return the entries of the files that are in the snapshot.

    Entries with the status DELETED are left out.
    """
    is_live = pc.not_equal(entries.column("status"), DELETED)
    return entries if pc.all(is_live).as_py() else entries.filter(is_live)


@dataclass(frozen=True, slots=True)
class _Spec:
    id: int
    partition: StructType
    as_text: Sequence[int]
    """The ids of partition fields with unknown transforms. Their values are converted to text."""
    times: Sequence[tuple[Field, str]] = ()
    """The partition fields of a timestamp type, each with the name of its source column."""


@dataclass(frozen=True, slots=True)
class _UnpackedManifest:
    """A decompressed manifest, and its row in the manifest list."""

    listed: Mapping[str, Any]
    file: RecordFile

    @property
    def count(self) -> int:
        return int(self.file.blocks.counts.sum())


def _spec_of(places: FilePlaces, metadata: TableMetadata, listed: Mapping[str, Any]) -> _Spec:
    try:
        spec = metadata.spec_of(listed["partition_spec_id"])
        partition = partition_type(metadata, spec)
    except CorruptTableError as reason:
        raise CorruptTableError(
            f"the manifest {listed['manifest_path']} of {places.uri} cannot be read: {reason}. "
            "Roll back to an earlier snapshot, or restore the metadata file from a backup"
        ) from None
    return _Spec(
        spec.spec_id, partition, _unknown_fields(spec), _time_fields(spec, partition, metadata)
    )


def _is_like(manifest: _UnpackedManifest, group: Sequence[_UnpackedManifest]) -> bool:
    """Return True if a manifest is small and similar, so that it can be decoded together with
    ``group``.
    """
    first = group[0]
    size = len(manifest.file.blocks.content) + sum(len(e.file.blocks.content) for e in group)
    return (
        size <= _SMALL_BYTES
        and len(group) < _MOST_TOGETHER
        and manifest.file.blocks.schema == first.file.blocks.schema
        and all(manifest.listed[name] == first.listed[name] for name in _ALIKE)
    )


def _read_like(
    manifests: Sequence[_UnpackedManifest], spec: _Spec, statistics_of: Collection[int] | None
) -> pa.Table:
    """Return the entries of similar manifests, decoded together, or one by one if that fails."""
    if len(manifests) > 1:
        first = manifests[0].file
        joined = replace(first, blocks=join_blocks([each.file.blocks for each in manifests]))
        # one by one, so that the error names the damaged manifest
        with suppress(CorruptTableError, UnsupportedError):
            if parts := _by_column(joined, spec, statistics_of):
                return _completed(parts, spec, manifests)
    return pa.concat_tables(_read_manifest(each, spec, statistics_of) for each in manifests)


def _read_manifest(
    manifest: _UnpackedManifest, spec: _Spec, statistics_of: Collection[int] | None
) -> pa.Table:
    parts = _by_column(manifest.file, spec, statistics_of) or _by_record(manifest.file, spec)
    return _completed(parts, spec, [manifest])


def _completed(
    parts: Iterable[Mapping[str, pa.Array]], spec: _Spec, manifests: Sequence[_UnpackedManifest]
) -> pa.Table:
    schema = entry_schema(spec.partition)
    tables = (pa.table(dict(each), schema=schema) for each in parts)
    found = pa.concat_tables(tables).combine_chunks()
    _check(found, manifests)
    place = schema.get_field_index(_SPEC_ID.name)
    spec_ids = pa.repeat(pa.scalar(spec.id, pa.int32()), found.num_rows)
    found = found.set_column(place, schema.field(place), spec_ids)
    counts = [each.count for each in manifests]
    return with_inherited(found, [each.listed for each in manifests], counts)


def _by_column(
    file: RecordFile, spec: _Spec, statistics_of: Collection[int] | None = None
) -> list[dict[str, pa.Array]]:
    """Return the columns of all entries; an empty list if ``_by_record`` must decode the
    manifest.
    """
    if spec.as_text or file.blocks.counts.sum() < _MANY:
        return []
    try:
        found = list(columnar_entries(file, _ENTRY, _FILE, spec.partition, statistics_of))
    except NotPlainError:
        return []
    return [_shown(columns) for columns in found]


def _by_record(file: RecordFile, spec: _Spec) -> Iterator[dict[str, pa.Array]]:
    for some in decode_by_id(file):
        yield _columns(some, spec, file.uri)


def _columns(records: Sequence[Mapping[str, Any]], spec: _Spec, uri: str) -> dict[str, pa.Array]:
    """Return the columns of the records; inherited numbers are not filled in."""
    try:
        files = [record["data_file"] for record in records]
        tuples = [file["partition"] for file in files]
    except (KeyError, TypeError):
        raise CorruptTableError(
            f"{uri} is not a manifest: it has an entry without a file or partition; {RESTORE}"
        ) from None
    columns = {field.name: column_of(records, field, uri) for field in _ENTRY}
    columns["partition"] = _partition_column(spec.partition, tuples, spec.as_text, uri)
    columns |= {
        field.name: column_of(files, field, uri, _DEFAULTS.get(field.name)) for field in _FILE
    }
    return _shown(columns)


def _shown(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    spec_ids = pa.nulls(len(columns["status"]), _SPEC_ID.type)
    formats = pc.utf8_upper(columns["file_format"])
    return columns | {_SPEC_ID.name: spec_ids, "file_format": formats}


def _check(found: pa.Table, manifests: Sequence[_UnpackedManifest]) -> None:
    uri, listed = manifests[0].file.uri, manifests[0].listed
    allowed = (DATA,) if listed["content"] == 0 else (POSITION_DELETES, EQUALITY_DELETES)
    for name, known in (("status", (EXISTING, ADDED, DELETED)), ("content", allowed)):
        unknown = set(found.column(name).unique().to_pylist()).difference(known)
        if unknown:
            raise CorruptTableError(
                f"{uri} is damaged: the {name} of an entry is {min(unknown)}, but must be "
                f"{' or '.join(map(str, known))}; {RESTORE}"
            )
    if found.column("key_metadata").null_count < found.num_rows:
        raise UnsupportedError(
            f"{uri} names encrypted files, and this version reads no encrypted tables: use the "
            "engine that has the keys"
        )
    for each in manifests:
        counts = [each.listed[f"{kind}_files_count"] or 0 for kind in _KINDS]
        if each.count < sum(counts):
            raise CorruptTableError(
                f"the manifest {each.file.uri} has {each.count} entries, but the manifest list "
                f"counts {sum(counts)}; restore both files from a backup"
            )


def _refuse_days(file: RecordFile, spec: _Spec) -> None:
    """Raise ``UnsupportedError`` if a manifest has dates in a partition field of a timestamp type.

    This happens if the source column was promoted from date to timestamp.
    """
    for field, column in spec.times:
        if has_int(file, field.id):
            raise UnsupportedError(
                f"{file.uri} has dates in the partition field {field.name!r}, but its column "
                f"{column!r} was promoted from date to {field.type}, which Iceberg does not allow "
                "for a column with this partition field. Rewrite the table with the engine that "
                "promoted the column, or restore the metadata file from before the promotion"
            )


def _time_fields(
    spec: PartitionSpec, partition: StructType, metadata: TableMetadata
) -> list[tuple[Field, str]]:
    return [
        (field, metadata.schema.name_of(each.source_id) or field.name)
        for each, field in zip(spec.fields, partition.fields, strict=True)
        if isinstance(field.type, PrimitiveType)
        and field.type.name.startswith("timestamp")
        and parse_transform(each.transform).kind is not TransformKind.VOID
    ]


def _unknown_fields(spec: PartitionSpec) -> list[int]:
    kinds = {each.field_id: parse_transform(each.transform).kind for each in spec.fields}
    return [field_id for field_id, kind in kinds.items() if kind is TransformKind.UNKNOWN]


def _partition_column(
    partition: StructType, tuples: Sequence[Mapping[str, Any]], as_text: Collection[int], uri: str
) -> pa.Array:
    arrow_type = to_arrow_type(partition)
    if not partition.fields:
        return pa.array([{}] * len(tuples), arrow_type)
    columns = []
    for field in partition.fields:
        try:
            values = [each[partition_key(field.id)] for each in tuples]
            if field.id in as_text:
                values = [None if each is None else str(each) for each in values]
            columns.append(values_to_arrow(field.type, values))
        except KeyError:
            raise CorruptTableError(
                f"{uri} has an entry without the partition field {field.name!r}; {RESTORE}"
            ) from None
        except (TypeError, ValueError, OverflowError, pa.ArrowException) as reason:
            raise CorruptTableError(
                f"{uri} has an unreadable value of the partition field {field.name!r}: {reason}; "
                f"{RESTORE}"
            ) from None
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))
