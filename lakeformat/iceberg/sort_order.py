# SPDX-License-Identifier: Apache-2.0
"""Sort orders: the order in which writers store the rows of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.iceberg.partition_spec import source_ids_of, sources_to_json
from lakeformat.iceberg.type_json import require_int, require_list, require_text

__all__ = ["SortField", "SortOrder", "order_from_json", "order_to_json"]


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order: a transform of a column, a direction, and the place of nulls."""

    source_ids: tuple[int, ...]
    transform: str
    direction: str
    """``asc`` or ``desc``."""
    null_order: str
    """``nulls-first`` or ``nulls-last``."""


@dataclass(frozen=True, slots=True)
class SortOrder:
    """A sort order with its fields; order 0 has no fields."""

    order_id: int
    fields: tuple[SortField, ...] = ()


def order_from_json(written: Mapping[str, Any]) -> SortOrder:
    """Parse a sort order from table metadata.

    Raise ``KeyError`` for a missing member and ``ValueError`` for a wrong value.
    """
    return SortOrder(
        require_int(written, "order-id"),
        tuple(_field(each) for each in require_list(written, "fields")),
    )


def order_to_json(order: SortOrder) -> dict[str, Any]:
    """Return a sort order as JSON of table metadata."""
    fields = [
        {
            **sources_to_json(each.source_ids),
            "transform": each.transform,
            "direction": each.direction,
            "null-order": each.null_order,
        }
        for each in order.fields
    ]
    return {"order-id": order.order_id, "fields": fields}


def _field(written: Mapping[str, Any]) -> SortField:
    direction, nulls = written["direction"], written["null-order"]
    if direction not in ("asc", "desc") or nulls not in ("nulls-first", "nulls-last"):
        raise ValueError(
            f"a sort field has direction {direction!r} and null-order {nulls!r}, not asc or desc "
            "with nulls-first or nulls-last"
        )
    return SortField(source_ids_of(written), require_text(written, "transform"), direction, nulls)
