# SPDX-License-Identifier: Apache-2.0
"""Maintains many tables, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lakeformat.catalog.base import Catalog
from lakeformat.tables.maintain.maintain_report import MaintainReport
from lakeformat.tables.table_by_table import TableOutcome, table_by_table

__all__ = ["maintain_tables"]


def maintain_tables(
    catalog: Catalog,
    names: Sequence[str],
    *,
    began: Callable[[str], None] | None = None,
    **how: Any,
) -> Iterator[TableOutcome[MaintainReport]]:
    """Maintain one table after the other with ``Table.maintain``, and yield the outcome of each.

    The error of one table is part of its outcome, and does not stop the tables after it. ``began``
    is called with the name of each table before its first step. ``how`` are the arguments of
    ``Table.maintain``.
    """

    def maintain(name: str) -> MaintainReport:
        return catalog.table(name).maintain(**how)

    yield from table_by_table(names, maintain, began=began)
