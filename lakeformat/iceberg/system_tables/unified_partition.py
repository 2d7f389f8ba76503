# SPDX-License-Identifier: Apache-2.0
"""Combines the partitions of all specs in one struct; fields that a spec lacks are null."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionField
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import Field, StructType

__all__ = ["unified_partition", "unified_type"]


def unified_type(metadata: TableMetadata) -> StructType:
    """Return the fields of all partition specs, ordered by id, each with its newest name.

    If a newer field has the same name, the field id is added to the name.
    """
    found: dict[int, Field] = {}
    voids: set[int] = set()
    newest_first = sorted(metadata.partition_specs, key=lambda each: each.spec_id, reverse=True)
    for spec in newest_first:
        for field, typed in zip(spec.fields, partition_type(metadata, spec).fields, strict=True):
            known = found.get(field.field_id)
            if known is None:
                found[field.field_id] = typed
                voids |= {field.field_id} if _is_void(field) else set()
            elif field.field_id in voids and not _is_void(field):
                found[field.field_id] = Field(field.field_id, known.name, typed.type)
                voids.discard(field.field_id)
    distinct = _with_distinct_names(found.values())
    return StructType(tuple(sorted(distinct, key=lambda each: each.id)))


def _with_distinct_names(newest_first: Iterable[Field]) -> list[Field]:
    """Return the fields with distinct names, which the columns of an Arrow table must have.

    An engine may replace a partition field by another one with the same name and a new id.
    """
    found: dict[str, Field] = {}
    for field in newest_first:
        name = field.name
        while name in found:
            name += f"_{field.id}"
        found[name] = replace(field, name=name)
    return list(found.values())


def unified_partition(entries: pa.Table, unified: StructType, own: StructType) -> pa.Array:
    """Return the partitions of entries as structs with the fields of all specs.

    ``unified`` has the fields of all specs, and ``own`` those of the spec of the entries.
    """
    arrow_type = to_arrow_type(unified)
    partition = entries.column("partition").combine_chunks()
    if not unified.fields:
        return partition
    places = {field.id: place for place, field in enumerate(own.fields)}
    columns = [
        _cast(partition.field(places[field.id]), wanted.type)
        if field.id in places
        else pa.nulls(len(partition), wanted.type)
        for field, wanted in zip(unified.fields, arrow_type, strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    return values if values.type == wanted else values.cast(wanted)


def _is_void(field: PartitionField) -> bool:
    return parse_transform(field.transform).kind is TransformKind.VOID
