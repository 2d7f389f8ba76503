# SPDX-License-Identifier: Apache-2.0
"""Discards staged results that will not be published."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.abort import delete_written
from lakeformat.paimon.commit.new_files import NewFileCheck
from lakeformat.paimon.commit.written_paths import written_paths
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.staged_result import (
    StagedResult,
    claimant,
    delete_staged,
    restore_staged,
)
from lakeformat.tables.report import Report

__all__ = ["DiscardReport", "discard", "where_published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardReport(Report):
    """The result of discarding one staged result, or of a dry run."""

    staged: str
    """The address of the staged result."""
    outcome: str
    """``discarded``, ``published`` (only its note was deleted) or ``claimed`` (it is kept)."""
    dry_run: bool
    created_millis: int
    files: int
    bytes: int
    left: tuple[str, ...] = ()
    """Files that could not be deleted; remove_orphans deletes them."""
    reason: str


def discard(handle: TableHandle, result: StagedResult, *, dry_run: bool) -> DiscardReport:
    """Delete one staged result with its files.

    The note is deleted before this looks for a claim. A publisher writes its claim before it reads
    the note. So at least one of the two finds the other.
    """
    storage, layout = handle.storage, handle.layout
    for _ in written_paths(handle, result.messages):
        pass  # refuses files outside of the table before anything is removed
    if not dry_run:
        delete_staged(storage, layout, result.name, with_claim=False)
    if (user := claimant(storage, layout, result.name)) is not None:
        if not dry_run:
            restore_staged(storage, layout, result)
        return _report(
            handle,
            result,
            "claimed",
            dry_run,
            f"user {user!r} is publishing it, or was interrupted: publish it again",
        )
    if reason := where_published(handle, result):
        return _report(handle, result, "published", dry_run, reason)
    left = () if dry_run else tuple(delete_written(handle, result.messages))
    reason = "not published"
    return _report(handle, result, "discarded", dry_run, reason, left)


def where_published(handle: TableHandle, result: StagedResult) -> str | None:
    """Return the reason if the table has files of the result, so it is published; else None."""
    try:
        NewFileCheck(handle, result.messages).check(latest_snapshot(handle.storage, handle.layout))
    except InvalidRequestError as reason:
        return str(reason).partition(":")[0]
    return None


def _report(
    handle: TableHandle,
    result: StagedResult,
    outcome: str,
    dry_run: bool,
    reason: str,
    left: tuple[str, ...] = (),
) -> DiscardReport:
    return DiscardReport(
        staged=handle.storage.uri(handle.layout.staged(result.name)),
        outcome=outcome,
        dry_run=dry_run,
        created_millis=result.created_millis,
        files=result.files,
        bytes=result.bytes,
        left=left,
        reason=reason,
    )
