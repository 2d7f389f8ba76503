# SPDX-License-Identifier: Apache-2.0
"""The facts on the page of an Iceberg table or a Mixed table; only metadata is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from lakeformat import IcebergHealthReport, IcebergTable, MixedTable
    from lakeformat.iceberg.metadata.snapshot import Reference
    from lakeformat.tables.consumers.report import ConsumerState
    from lakeformat.tables.table_snapshot import TableSnapshot

__all__ = ["IcebergColumn", "IcebergFacts", "look_at_iceberg_table"]

_RECENT = 20


@dataclass(frozen=True, slots=True)
class IcebergColumn:
    """A column of a table."""

    name: str
    type: str
    is_required: bool
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFacts:
    """The facts on the page of a table: health, newest snapshots, columns, properties and
    references.
    """

    template: ClassVar[str] = "iceberg_table.html"
    health: IcebergHealthReport
    counts_history: bool
    """True if ``health`` counts the files that only older snapshots need."""
    kind: str
    """The kind of the table: ``Iceberg table`` or ``Mixed table``."""
    format_version: int
    columns: Sequence[IcebergColumn]
    partition_by: Sequence[str]
    """The partition transforms of new files, such as ``day(event_time)``."""
    properties: Mapping[str, str]
    references: Sequence[Reference] | None
    """The branches and tags; None for a Mixed table, which has none."""
    consumers: Sequence[ConsumerState]
    recent: Sequence[TableSnapshot]
    """At most 20 snapshots, newest first."""


def look_at_iceberg_table(table: IcebergTable | MixedTable, *, history: bool) -> IcebergFacts:
    """Return the facts of a table. With ``history``, also read the manifests of all older
    snapshots.
    """
    from lakeformat.tables.credential_options import shown_options

    return IcebergFacts(
        health=table.health(time_travel=history),
        counts_history=history,
        kind=f"{table.format.capitalize()} table",
        format_version=table.format_version,
        columns=_columns(table),
        partition_by=table.partition_by,
        properties=shown_options(table.properties),
        references=_references(table) if "branches" in table.operations else None,
        consumers=table.consumers.list() if "consumers" in table.operations else (),
        recent=table.snapshots()[: -_RECENT - 1 : -1],
    )


def _references(table: Any) -> list[Reference]:
    return sorted(table.references.values(), key=lambda each: (each.type, each.name))


def _columns(table: IcebergTable | MixedTable) -> list[IcebergColumn]:
    from lakeformat.iceberg.type_json import type_to_json

    found = []
    for field in table.schema.fields:
        written = type_to_json(field.type)
        text = written if isinstance(written, str) else json.dumps(written)
        found.append(IcebergColumn(field.name, text, field.required, field.doc))
    return found
