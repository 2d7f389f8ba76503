"""One commit, in the driver, of what tasks have written."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import lakeformat as lake
from lakeformat.paimon.table import Overwritten

__all__ = ["publish"]

_log = logging.getLogger(__name__)


def publish(
    table: lake.Table,
    messages: list[lake.CommitMessage],
    *,
    overwrite: Overwritten | None = None,
    commit: lake.CommitId | None = None,
    watermark: int | None = None,
    properties: Mapping[str, str] | None = None,
    read_snapshot: int | None = None,
) -> lake.CommitReport:
    """Commit what tasks have written; unless they are the table's then, their files go."""
    try:
        report = table.commit(
            messages,
            overwrite=overwrite,
            commit=commit,
            watermark=watermark,
            properties=properties,
            read_snapshot=read_snapshot,
        )
    except lake.CommitOutcomeUnknownError:
        raise  # the table may refer to the files: they stay
    except lake.LakeError:
        _remove(table, messages)
        raise
    if report.unpublished_files:  # a twin of this run was faster: its files are the table's
        table.abort(messages)
    return report


def _remove(table: lake.Table, messages: list[lake.CommitMessage]) -> None:
    """Remove the files; why the commit failed is what matters, also where this fails as well."""
    try:
        table.abort(messages)
    except lake.LakeError as reason:
        _log.warning("files nobody refers to stay in %s: %s", table.location, reason)
