# SPDX-License-Identifier: Apache-2.0
"""Partition specs: the transforms of columns that define the partition of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.iceberg.type_json import require_int, require_list, require_text

__all__ = [
    "PartitionField",
    "PartitionSpec",
    "source_ids_of",
    "sources_to_json",
    "spec_from_json",
    "spec_to_json",
]

FIRST_FIELD_ID = 1000
"""The id of the first partition field. Fields without ids, which version 1 allows, are numbered
from it.
"""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition: a transform of a column."""

    source_ids: tuple[int, ...]
    """The ids of the columns; several only for a transform with several arguments."""
    field_id: int
    name: str
    transform: str
    """The transform as in the metadata: ``identity``, ``bucket[16]``, ``day``."""

    @property
    def source_id(self) -> int:
        """The id of the column, for a transform with one argument."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition fields of a table; without fields the table is not partitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...] = ()


def spec_from_json(written: Mapping[str, Any]) -> PartitionSpec:
    """Parse a partition spec from table metadata.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    spec_id = require_int(written, "spec-id")
    fields = require_list(written, "fields")
    return PartitionSpec(
        spec_id, tuple(_field(each, FIRST_FIELD_ID + place) for place, each in enumerate(fields))
    )


def spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    """Return a partition spec as JSON of table metadata."""
    fields = [
        {
            **sources_to_json(each.source_ids),
            "field-id": each.field_id,
            "name": each.name,
            "transform": each.transform,
        }
        for each in spec.fields
    ]
    return {"spec-id": spec.spec_id, "fields": fields}


def source_ids_of(written: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the column ids of a partition or sort field; since version 3 there may be several.

    Raise ``KeyError`` if they are missing and ``ValueError`` if they are not ints.
    """
    if "source-ids" not in written:
        return (require_int(written, "source-id"),)
    ids = written["source-ids"]
    if not isinstance(ids, list) or not ids:
        raise ValueError(f"source-ids is {ids!r}, not a list of ids")
    return tuple(require_int({"source-ids": each}, "source-ids") for each in ids)


def sources_to_json(ids: tuple[int, ...]) -> dict[str, Any]:
    """Return the member with the column ids of a partition or sort field."""
    return {"source-id": ids[0]} if len(ids) == 1 else {"source-ids": [*ids]}


def _field(written: Mapping[str, Any], without_id: int) -> PartitionField:
    return PartitionField(
        source_ids_of(written),
        require_int(written, "field-id") if "field-id" in written else without_id,
        require_text(written, "name"),
        require_text(written, "transform"),
    )
