# SPDX-License-Identifier: Apache-2.0
"""Removes the orphan files of both stores of a Mixed table.

Both directories are searched before the first file is deleted, so a refused removal deletes
nothing. A file of one store to which the other store refers is not an orphan.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakeformat.iceberg.orphans.remove import OrphanOptions, delete_orphans, find_orphans
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.tables.deleter import OnRemoval
from lakeformat.tables.orphan_report import OrphanReport

__all__ = ["remove_mixed_orphans"]

_NUMBERS = (
    "scanned_files",
    "scanned_bytes",
    "orphan_files",
    "orphan_bytes",
    "removed_files",
    "removed_bytes",
    "removed_directories",
    "failures",
    "young_files",
    "young_bytes",
    "writing_files",
    "unknown_files",
    "files_left_out",
)
_LISTS = ("failed", "external_paths_left_out", "files")
_log = logging.getLogger(__name__)


def remove_mixed_orphans(
    pair: StorePair,
    options: OrphanOptions,
    *,
    dry_run: bool,
    on_progress: OnRemoval | None = None,
) -> OrphanReport:
    """Remove the orphan files of both stores, and return one report; a dry run only lists them."""
    pair.load()  # half a pair is refused
    change = replace(pair.base, pointer=pair.change)
    searches = [
        find_orphans(handle, options, dry_run=dry_run, beside=[other])
        for handle, other in ((change, pair.base), (pair.base, change))
    ]
    found = [delete_orphans(each, dry_run=dry_run, on_progress=on_progress) for each in searches]
    report = _of_both(pair.base.uri, found)
    _log.info("orphan files of %s: %s", report.table, report.reason)
    return report


def _of_both(table: str, reports: Sequence[OrphanReport]) -> OrphanReport:
    """Return the report of a pair: the sums of the reports of the change store and the base
    store.
    """
    change, base = reports
    totals: dict[str, Any] = {name: sum(getattr(e, name) for e in reports) for name in _NUMBERS}
    totals |= {name: (*getattr(change, name), *getattr(base, name)) for name in _LISTS}
    objections = [each.objection for each in reports if each.objection is not None]
    return replace(
        base,
        table=table,
        older_than=min(each.older_than for each in reports),
        looked_through=f"{change.looked_through} of the change store, {base.looked_through} of the "
        "base store",
        objection="; ".join(objections) or None,
        reason=f"change store: {change.reason}; base store: {base.reason}",
        **totals,
    )
