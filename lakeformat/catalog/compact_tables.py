# SPDX-License-Identifier: Apache-2.0
"""Compacts many tables of a warehouse, chosen by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lakeformat.catalog.base import Catalog
from lakeformat.errors import NotFoundError
from lakeformat.executor import Executor, where_to_work
from lakeformat.paimon.compact.compact import OnUnit
from lakeformat.paimon.compact.compact_report import CompactReport
from lakeformat.paimon.compact.partition_choice import Idle, idle_millis
from lakeformat.paimon.compact.supported import require_strategy
from lakeformat.paimon.compact.unit import CompactPlan
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.name_pattern import name_pattern
from lakeformat.tables.table_by_table import TableOutcome, table_by_table

__all__ = ["compact_tables", "matching_tables", "plan_tables"]


def matching_tables(
    catalog: Catalog,
    *,
    databases: str = ".*",
    including: str = ".*",
    excluding: str | None = None,
) -> list[str]:
    """Return the tables ``database.table`` that the regular expressions choose.

    ``databases`` must match the whole name of the database, and ``including`` the whole
    ``database.table``. If ``excluding`` matches the whole ``database.table``, the table is left
    out.
    """
    database, wanted = name_pattern("databases", databases), name_pattern("including", including)
    unwanted = None if excluding is None else name_pattern("excluding", excluding)
    names = [
        f"{name}.{table}"
        for name in catalog.list_databases()
        if database.fullmatch(name)
        for table in _tables_of(catalog, name)
    ]
    return [
        name
        for name in names
        if wanted.fullmatch(name) and not (unwanted and unwanted.fullmatch(name))
    ]


def _tables_of(catalog: Catalog, database: str) -> list[str]:
    try:
        return catalog.list_tables(database)
    except NotFoundError:  # the database was dropped since it was listed
        return []


def compact_tables(
    catalog: Catalog,
    names: Sequence[str],
    *,
    strategy: str = "full",
    where: Where | None = None,
    idle: Idle | None = None,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
    began: Callable[[str], None] | None = None,
) -> Iterator[TableOutcome[CompactReport]]:
    """Compact one table after the other with ``Table.compact``, and yield the outcome of each.

    The error of one table is part of its outcome, and does not stop the tables after it. ``began``
    is called with the name of each table before its compaction.
    """
    _require(strategy, idle)
    where_to_work(executor)

    def compact(name: str) -> CompactReport:
        return catalog.table(name).compact(
            strategy=strategy,
            where=where,
            idle=idle,
            commit=commit,
            executor=executor,
            on_progress=on_progress,
        )

    yield from table_by_table(names, compact, began=began)


def plan_tables(
    catalog: Catalog,
    names: Sequence[str],
    *,
    strategy: str = "full",
    where: Where | None = None,
    idle: Idle | None = None,
) -> Iterator[TableOutcome[CompactPlan]]:
    """Yield for each table the plan that ``compact_tables`` would carry out; nothing is changed."""
    _require(strategy, idle)

    def plan(name: str) -> CompactPlan:
        return catalog.table(name).plan_compaction(strategy=strategy, where=where, idle=idle)

    yield from table_by_table(names, plan)


def _require(strategy: str, idle: Idle | None) -> None:
    """Raise ``InvalidRequestError`` for an unknown ``strategy`` or an invalid ``idle``, before any
    table is compacted.
    """
    require_strategy(strategy)
    if idle is not None:
        idle_millis(idle)
