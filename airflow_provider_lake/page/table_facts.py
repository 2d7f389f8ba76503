# SPDX-License-Identifier: Apache-2.0
"""The facts on the page of a table; only metadata is read, never a data file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_lake.page.iceberg_facts import IcebergFacts, look_at_iceberg_table
from airflow_provider_lake.page.team_lake import lake_of_connection

if TYPE_CHECKING:
    from lakeformat import HealthReport, Snapshot, Table

__all__ = ["Column", "TableFacts", "counts_rows", "look_at_paimon_table", "look_at_table"]

_RECENT = 20
_LOOKED_BACK = 200
"""The largest number of snapshots that are read to find the newest compaction."""
_MOST_TAGS = 200
"""The largest number of tags that a page lists. With more tags the page lists none, because each
tag is read from a separate file.
"""
_MOST_COUNTED_FILES = 10_000
"""The page counts the rows of a table with a primary key if it has at most this many files."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    is_key: bool
    is_partition: bool
    default: str | None
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """The facts on the page of a table: health, newest snapshots, columns, options, tags and
    consumers.
    """

    template: ClassVar[str] = "table.html"
    health: HealthReport
    counts_history: bool
    """True if ``health`` counts the files that only older snapshots need."""
    comment: str | None
    columns: tuple[Column, ...]
    options: Mapping[str, str]
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    rows: int | None
    """The number of rows that a scan returns; None if unknown."""
    counts_rows: bool
    """True if each record that a commit counts is one row of a scan."""
    tags: Sequence[Any] | None
    """The tags; None if there are more than 200."""
    consumers: Sequence[Any]
    recent: list[Snapshot]
    """At most 20 snapshots, newest first."""
    last_compaction: Snapshot | None
    looked_back: int
    """The number of snapshots that were read to find the newest compaction."""
    now_millis: int


def look_at_table(connection_id: str, name: str, *, history: bool) -> TableFacts | IcebergFacts:
    """Return the facts of a table by its name ``database.table``. With ``history``, also read all
    older snapshots.

    Raises ``NotFoundError`` for a missing table, and ``UnsupportedError`` for a format without a
    page.
    """
    from lakeformat import UnsupportedError

    table = lake_of_connection(connection_id).table(name)
    look = _LOOKS.get(table.format)
    if look is None:
        raise UnsupportedError(
            f"{name} is {table.kind}, for which there is no page: `lake snapshots {name}` and "
            f"`lake files {name}` show its metadata"
        )
    return look(table, history=history)


def look_at_paimon_table(table: Table, *, history: bool) -> TableFacts:
    """Return the facts of a table. With ``history``, also read all older snapshots."""
    from lakeformat import CommitKind
    from lakeformat.environment import SYSTEM
    from lakeformat.tables.credential_options import shown_options

    read = _newest(table)
    compactions = (each for each in read if each.commit_kind is CommitKind.COMPACT)
    health, schema = table.health(time_travel=history), table.schema
    return TableFacts(
        health=health,
        counts_history=history,
        comment=schema.comment,
        columns=_columns(table),
        options=shown_options(schema.options),
        primary_key=tuple(schema.primary_keys),
        partition_by=tuple(schema.partition_keys),
        rows=_rows_of_a_scan(table, health),
        counts_rows=counts_rows(table),
        tags=None if health.snapshots.tags > _MOST_TAGS else table.tags.list(),
        consumers=table.consumers.list(),
        recent=read[:_RECENT],
        last_compaction=next(compactions, None),
        looked_back=len(read),
        now_millis=SYSTEM.now_millis(),
    )


def counts_rows(table: Table) -> bool:
    """Return True if each record that a commit counts is one row of a scan.

    Return False for a table with a primary key, deletion vectors or data evolution. There, a record
    may replace an older one, be hidden by a deletion vector, or be one of several for the same row.
    """
    options = table.options
    return not (
        table.schema.primary_keys
        or options.deletion_vectors_enabled
        or options.data_evolution_enabled
    )


def _rows_of_a_scan(table: Table, health: HealthReport) -> int | None:
    """Return the number of rows that a scan would return, computed from metadata. Return None if a
    count would have to merge rows or read deletes, if there are too many files, or if the table
    cannot be read.
    """
    from lakeformat import LakeError

    if not table.schema.primary_keys:
        is_known = not health.deletes.uncounted_files
        return health.files.rows - health.deletes.hidden_rows if is_known else None
    if health.files.files > _MOST_COUNTED_FILES:
        return None
    try:
        scan = table.scan(newest=True)
        found = [scan.known_count(split) for split in scan.splits()]
    except LakeError:  # the table cannot be read: its health has the reason
        return None
    return None if None in found else sum(each or 0 for each in found)


def _columns(table: Table) -> tuple[Column, ...]:
    from lakeformat.types.type_kinds import type_text

    schema = table.schema
    return tuple(
        Column(
            name=field.name,
            type=type_text(field.type),
            is_key=field.name in schema.primary_keys,
            is_partition=field.name in schema.partition_keys,
            default=field.default_value,
            comment=field.description,
        )
        for field in schema.fields
    )


def _newest(table: Table) -> list[Snapshot]:
    """Return the 20 newest snapshots, which the page lists, newest first. If none of them is a
    compaction, also return older snapshots, down to the newest compaction, but at most 200
    snapshots in total.
    """
    from lakeformat import CommitKind

    found: list[Snapshot] = []
    next_one = table.latest_snapshot()
    while next_one is not None:
        found.append(next_one)
        is_found = any(each.commit_kind is CommitKind.COMPACT for each in found)
        if len(found) >= _LOOKED_BACK or (len(found) >= _RECENT and is_found):
            break
        next_one = table.snapshot(next_one.position.before)
    return found


_LOOKS: Mapping[str, Callable[..., TableFacts | IcebergFacts]] = {
    "iceberg": look_at_iceberg_table,
    "mixed": look_at_iceberg_table,
    "paimon": look_at_paimon_table,
}
"""The function that reads the facts of a table, by the table's format."""
