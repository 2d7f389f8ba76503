# SPDX-License-Identifier: Apache-2.0
"""Clones the tables of a database one after the other; the error of one table does not stop the
rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from lakeformat.catalog.base import Catalog
from lakeformat.catalog.transfer.clone import OnFiles, clone_table
from lakeformat.catalog.transfer.transfer_reports import CloneReport
from lakeformat.deprecation import renamed_argument
from lakeformat.tables.name_pattern import name_pattern
from lakeformat.tables.table import offering_arguments
from lakeformat.tables.table_by_table import TableOutcome, table_by_table

__all__ = ["clone_database"]

_log = logging.getLogger(__name__)


@renamed_argument("tell", "on_progress")
@offering_arguments
def clone_database(
    source: Catalog,
    database: str,
    catalog: Catalog,
    *,
    to: str | None = None,
    including: str = ".*",
    excluding: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    on_progress: OnFiles | None = None,
) -> Iterator[TableOutcome[CloneReport]]:
    """Clone tables of ``database`` into database ``to``, and yield the outcome of each.

    The default of ``to`` is ``database``. Database ``to`` is created if it does not exist, but
    ``dry_run`` requires that it exists. The regular expression ``including`` must match the whole
    name of a table. If ``excluding`` matches the whole name of a table, the table is left out.

    An error, such as a table that already exists, is part of the outcome of its table, and does not
    stop the tables after it. Repeat the call to clone the tables that are missing.
    """
    wanted = name_pattern("including", including)
    refused = None if excluding is None else name_pattern("excluding", excluding)
    target = to or database
    names = [
        name
        for name in source.list_tables(database)
        if wanted.fullmatch(name) and not (refused is not None and refused.fullmatch(name))
    ]
    if not dry_run:
        catalog.create_database(target, exist_ok=True)

    def clone(table: str) -> CloneReport:
        return clone_table(
            source.table(table),
            catalog,
            f"{target}.{table.removeprefix(f'{database}.')}",
            full=full,
            dry_run=dry_run,
            on_progress=on_progress,
        )

    for outcome in table_by_table([f"{database}.{name}" for name in names], clone):
        if outcome.error is not None:
            _log.warning("%s was not cloned: %s", outcome.table, outcome.error)
        yield outcome
