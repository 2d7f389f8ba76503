# SPDX-License-Identifier: Apache-2.0
"""Manifests: the entries of data or delete files of one partition spec, as Arrow tables.

A table of entries has these columns, and ``partition`` with the fields of its spec. An entry whose
writer left the sequence numbers, the snapshot or the first row id to the manifest has them here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.avro.avro_container import NotPlainError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.avro_records import (
    RecordFile,
    decode_by_id,
    partition_key,
    read_record_file,
)
from lakeformat.iceberg.metadata.columnar_manifest import columnar_entries
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.physical_values import values_to_arrow
from lakeformat.iceberg.metadata.record_columns import column_of
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import StructType
from lakeformat.tables.json_file import RESTORE

__all__ = [
    "ADDED",
    "DATA",
    "DELETED",
    "EQUALITY_DELETES",
    "EXISTING",
    "POSITION_DELETES",
    "entry_schema",
    "live_entries",
    "read_each",
    "read_entries",
]

EXISTING, ADDED, DELETED = 0, 1, 2
"""The values of ``status``."""
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""The values of ``content``; deletion vectors are position deletes in a Puffin file."""

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
_INHERITED = (*(field.name for field in _ENTRY), "first_row_id", "record_count")
"""The columns that inherit numbers, or decide which."""
_DEFAULTS = {"content": DATA}
_MANY = 32
"""Fewer entries are decoded faster one by one."""


def entry_schema(partition: StructType) -> pa.Schema:
    """Return the columns of entries under one partition spec."""
    return pa.schema([*_ENTRY, _SPEC_ID, pa.field("partition", to_arrow_type(partition)), *_FILE])


def read_entries(
    places: FilePlaces,
    metadata: TableMetadata,
    manifests: pa.Table,
    statistics_of: Collection[int] | None = None,
) -> dict[int, pa.Table]:
    """Return all entries of some manifests of a list by the id of their spec, in their order.

    Their statistics are at least those of the columns with the ids ``statistics_of``, by default
    of all columns.
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
    """Yield the id of the spec and the entries of one manifest after another."""
    for manifest in manifests.to_pylist():
        entries = _read_manifest(places, metadata, manifest, statistics_of)
        yield manifest["partition_spec_id"], entries


def live_entries(entries: pa.Table) -> pa.Table:
    """Return the entries whose files are part of the snapshot."""
    is_live = pc.not_equal(entries.column("status"), DELETED)
    return entries if pc.all(is_live).as_py() else entries.filter(is_live)


def _read_manifest(
    places: FilePlaces,
    metadata: TableMetadata,
    manifest: Mapping[str, Any],
    statistics_of: Collection[int] | None,
) -> pa.Table:
    uri, spec_id = manifest["manifest_path"], manifest["partition_spec_id"]
    try:
        spec = metadata.spec_of(spec_id)
        partition = partition_type(metadata, spec)
    except CorruptTableError as reason:
        raise CorruptTableError(f"{places.uri} names the manifest {uri}: {reason}") from None
    schema = entry_schema(partition)
    file = read_record_file(places.read(uri), uri)
    parts = _by_column(file, partition, _unknown_fields(spec), statistics_of)
    found = pa.concat_tables(
        pa.table(each, schema=schema)
        for each in parts or _by_record(file, partition, _unknown_fields(spec))
    ).combine_chunks()
    _check(found, manifest)
    for name, column in _inherited(found, manifest).items():
        place = schema.get_field_index(name)
        found = found.set_column(place, schema.field(place), column)
    spec_ids = pa.repeat(pa.scalar(spec_id, pa.int32()), found.num_rows)
    return found.set_column(schema.get_field_index(_SPEC_ID.name), _SPEC_ID, spec_ids)


def _by_column(
    file: RecordFile,
    partition: StructType,
    as_text: Collection[int],
    statistics_of: Collection[int] | None,
) -> list[dict[str, pa.Array]]:
    """Return the columns of all entries; none if the manifest is left to ``_by_record``."""
    if as_text or file.blocks.counts.sum() < _MANY:
        return []
    try:
        found = list(columnar_entries(file, _ENTRY, _FILE, partition, statistics_of))
    except NotPlainError:
        return []
    return [_completed(columns) for columns in found]


def _by_record(
    file: RecordFile, partition: StructType, as_text: Collection[int]
) -> Iterator[dict[str, pa.Array]]:
    """Yield the columns of many entries after each other, decoded one by one."""
    for some in decode_by_id(file):
        yield _columns(some, partition, as_text, file.uri)


def _columns(
    records: Sequence[Mapping[str, Any]],
    partition: StructType,
    as_text: Collection[int],
    uri: str,
) -> dict[str, pa.Array]:
    """Return the columns of some entries, without the numbers that they inherit."""
    try:
        files = [record["data_file"] for record in records]
        tuples = [file["partition"] for file in files]
    except (KeyError, TypeError):
        raise CorruptTableError(
            f"{uri} is not a manifest: it has an entry without a file or its partition; {RESTORE}"
        ) from None
    columns = {field.name: column_of(records, field, uri) for field in _ENTRY}
    columns["partition"] = _partition_column(partition, tuples, as_text, uri)
    columns |= {
        field.name: column_of(files, field, uri, _DEFAULTS.get(field.name)) for field in _FILE
    }
    return _completed(columns)


def _completed(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    spec_ids = pa.nulls(len(columns["status"]), _SPEC_ID.type)
    formats = pc.utf8_upper(columns["file_format"])
    return columns | {_SPEC_ID.name: spec_ids, "file_format": formats}


def _check(found: pa.Table, manifest: Mapping[str, Any]) -> None:
    uri = manifest["manifest_path"]
    allowed = (DATA,) if manifest["content"] == 0 else (POSITION_DELETES, EQUALITY_DELETES)
    for name, known in (("status", (EXISTING, ADDED, DELETED)), ("content", allowed)):
        unknown = set(found.column(name).unique().to_pylist()).difference(known)
        if unknown:
            raise CorruptTableError(
                f"{uri} has an entry of the {name} {min(unknown)}, which its list does not allow; "
                f"{RESTORE}"
            )
    if found.column("key_metadata").null_count < found.num_rows:
        raise UnsupportedError(
            f"{uri} names encrypted files, and this version reads no encrypted tables: use the "
            "engine that has the keys"
        )
    counts = [manifest[f"{kind}_files_count"] or 0 for kind in ("added", "existing", "deleted")]
    if found.num_rows < sum(counts):
        raise CorruptTableError(
            f"{uri} ends after {found.num_rows} entries, but its list counts {sum(counts)}; "
            f"{RESTORE}"
        )


def _inherited(entries: pa.Table, manifest: Mapping[str, Any]) -> dict[str, pa.Array]:
    """Return the columns whose missing values come from the list's entry of the manifest."""
    columns = {name: entries.column(name).combine_chunks() for name in _INHERITED}
    added = pc.equal(columns["status"], ADDED)
    number = manifest["sequence_number"]
    found = {"snapshot_id": pc.fill_null(columns["snapshot_id"], manifest["added_snapshot_id"])}
    for name in ("sequence_number", "file_sequence_number"):
        # Version 1 has no numbers; later versions leave out only those of added files.
        inherits = True if number == 0 else added
        filled = pc.if_else(inherits, pc.fill_null(columns[name], number), columns[name])
        if filled.null_count:
            raise CorruptTableError(
                f"{manifest['manifest_path']} has an entry without {name} that was not added by "
                f"the manifest; {RESTORE}"
            )
        found[name] = filled
    found["first_row_id"] = _first_row_ids(columns, manifest)
    return found


def _first_row_ids(columns: Mapping[str, pa.Array], manifest: Mapping[str, Any]) -> pa.Array:
    """Return the first row ids; files without one are numbered from the manifest's first row id."""
    ids, first = columns["first_row_id"], manifest["first_row_id"]
    if first is None:
        return pa.nulls(len(ids), pa.int64())
    live = pc.not_equal(columns["status"], DELETED)
    numbered = pc.and_(live, ids.is_null()).to_numpy(zero_copy_only=False)
    rows = np.where(numbered, columns["record_count"].to_numpy(), 0)
    if rows.size and rows.min() < 0:
        raise CorruptTableError(
            f"{manifest['manifest_path']} has a file without a number of rows, so its row ids are "
            f"not known; {RESTORE}"
        )
    starts = first + np.cumsum(rows) - rows
    return pc.if_else(pa.array(numbered), pa.array(starts, pa.int64()), ids)


def _unknown_fields(spec: PartitionSpec) -> list[int]:
    """Return the fields with unknown transforms, whose values may be of any type."""
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
