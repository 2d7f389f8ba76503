# SPDX-License-Identifier: Apache-2.0
"""Combines the partitions of all specs in one struct; fields that a spec lacks are null."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import Field, StructType

__all__ = ["unified_partition", "unified_type"]


_Meaning: TypeAlias = tuple[int, tuple[int, ...], str]
"""The id, the columns and the transform of a partition field.

In format version 1, fields of different columns may have the same id.
"""


def unified_type(metadata: TableMetadata) -> StructType:
    """Return the fields of all partition specs, ordered by id, each with its newest name.

    If several fields have the same name, the newest field keeps it. Each older field gets its id
    as a suffix, such as ``day_1001``.
    """
    return StructType(tuple(_unified_fields(metadata).values()))


def unified_partition(entries: pa.Table, metadata: TableMetadata, spec: PartitionSpec) -> pa.Array:
    """Return the partitions of entries of one spec as structs with the fields of all specs."""
    partition = entries.column("partition").combine_chunks()
    wanted = _unified_fields(metadata)
    if not wanted:
        return partition
    own = {_meaning(field): place for place, field in enumerate(spec.fields)}
    arrow_type = to_arrow_type(StructType(tuple(wanted.values())))
    columns = [
        partition.field(own[each]) if each in own else pa.nulls(len(partition), field.type)
        for each, field in zip(wanted, arrow_type, strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


def _unified_fields(metadata: TableMetadata) -> dict[_Meaning, Field]:
    found: dict[_Meaning, Field] = {}
    names: dict[tuple[int, tuple[int, ...]], str] = {}
    newest_first = sorted(metadata.partition_specs, key=lambda each: each.spec_id, reverse=True)
    for spec in newest_first:
        for field, typed in zip(spec.fields, partition_type(metadata, spec).fields, strict=True):
            name = names.setdefault((field.field_id, field.source_ids), field.name)
            found.setdefault(_meaning(field), replace(typed, name=name))
    # A void field has only nulls, so it needs no field beside that of the values it once had.
    valued = {each[:2] for each in found if not _is_void(each)}
    kept = {each: found[each] for each in found if not _is_void(each) or each[:2] not in valued}
    distinct = dict(zip(kept, _with_distinct_names(kept.values()), strict=True))
    return dict(sorted(distinct.items(), key=lambda each: each[1].id))


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


def _meaning(field: PartitionField) -> _Meaning:
    return field.field_id, field.source_ids, field.transform


def _is_void(meaning: _Meaning) -> bool:
    return parse_transform(meaning[2]).kind is TransformKind.VOID
