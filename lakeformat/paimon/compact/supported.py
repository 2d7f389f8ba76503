# SPDX-License-Identifier: Apache-2.0
"""Refuses tables that this version does not compact."""

from __future__ import annotations

from collections.abc import Iterable

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.merge.looked_up import looks_up
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.options.operation import Operation

__all__ = [
    "STRATEGIES",
    "require_strategy",
    "require_supported",
    "require_whole_rows",
    "why_not_compacted",
]

STRATEGIES = ("full", "minor")


def require_strategy(strategy: str) -> None:
    """Raise InvalidRequestError unless the strategy is ``full`` or ``minor``."""
    if strategy not in STRATEGIES:
        raise InvalidRequestError(
            f"strategy must be 'full' (all files) or 'minor' (only what is due), got {strategy!r}. "
            "To sort the rows of a Paimon table, use order_by and order_strategy instead"
        )


def require_supported(handle: TableHandle, strategy: str) -> None:
    """Raise UnsupportedError for a table whose compaction needs work that this version cannot do.

    Raise InvalidRequestError for an unknown strategy, or for an invalid value of an option.
    """
    require_strategy(strategy)
    require_allowed(handle, Operation.COMPACT)
    reason = _keyed(handle) if handle.schema.primary_keys else _append(handle)
    if reason:
        raise UnsupportedError(
            f"{handle.uri} {reason}; compact the table with another engine. Nothing was changed"
        )


def why_not_compacted(handle: TableHandle) -> str | None:
    """Return the error message if a compaction would refuse the table, else None."""
    try:
        require_supported(handle, "full")
    except InvalidRequestError as reason:
        return str(reason).removesuffix(". Nothing was changed")
    return None


def require_whole_rows(handle: TableHandle, files: Iterable[ManifestEntry]) -> None:
    """Raise UnsupportedError for files that have only some columns of their rows."""
    for entry in files:
        if entry.file.write_cols is not None:
            raise UnsupportedError(
                f"{entry.file.file_name} of {handle.uri} keeps only some columns, and this version "
                "does not join such files by row id: compact the table with another engine"
            )


def _keyed(handle: TableHandle) -> str | None:
    options = handle.options
    if options.changelog_producer == "full-compaction" and looks_up(options):
        return (
            "looks up old rows in every compaction, for deletion vectors, 'first-row' or "
            "'force-lookup'; this version does not combine that with 'changelog-producer' = "
            "'full-compaction'"
        )
    return None


def _append(handle: TableHandle) -> str | None:
    if handle.options.data_evolution_enabled:
        return (
            "sets 'data-evolution.enabled': its files may have only some columns, and this version "
            "reads such files but does not compact them"
        )
    if handle.options.row_tracking_enabled:
        return "tracks row ids ('row-tracking.enabled'), which this version would lose"
    return None
