# SPDX-License-Identifier: Apache-2.0
"""Removes the orphan files of many tables, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lakeformat.catalog.base import Catalog
from lakeformat.tables.orphan_report import OrphanReport
from lakeformat.tables.table_by_table import TableOutcome, table_by_table

__all__ = ["remove_orphans_of"]


def remove_orphans_of(
    catalog: Catalog,
    names: Sequence[str],
    *,
    began: Callable[[str], None] | None = None,
    **how: Any,
) -> Iterator[TableOutcome[OrphanReport]]:
    """Remove the orphan files of one table after the other, and yield the outcome of each.

    The error of one table is part of its outcome, and does not stop the tables after it. ``began``
    is called with the name of each table before its search. ``how`` are the arguments of
    ``Table.remove_orphans``.
    """

    def remove(name: str) -> OrphanReport:
        return catalog.table(name).remove_orphans(**how)

    yield from table_by_table(names, remove, began=began)
