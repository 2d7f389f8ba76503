"""Gives up staged results that nobody will publish any more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.abort import delete_written
from lakeformat.paimon.commit.new_files import NewFiles
from lakeformat.paimon.commit.written_paths import written_paths
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.staged_result import (
    StagedResult,
    claimant,
    delete_staged,
    restore_staged,
)

__all__ = ["DiscardReport", "discard", "where_published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardReport:
    """What became of one staged result, or what would."""

    staged: str
    """Its address."""
    outcome: str
    """``discarded``, ``published`` (only the note was left of it) or ``claimed`` (it stays)."""
    dry_run: bool
    created_millis: int
    files: int
    bytes: int
    left: tuple[str, ...] = ()
    """Files that would not go; the removal of orphans takes them."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def discard(handle: TableHandle, result: StagedResult, *, dry_run: bool) -> DiscardReport:
    """Remove one staged result with its files.

    What names it goes first, then a claim is looked for: whoever publishes claims first and reads
    then, so that one of both sides sees the other.
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
            f"user {user!r} is publishing it, or broke off: publish it again",
        )
    if reason := where_published(handle, result):
        return _report(handle, result, "published", dry_run, reason)
    left = () if dry_run else tuple(delete_written(handle, result.messages))
    said = "nobody has published it"
    return _report(handle, result, "discarded", dry_run, said, left)


def where_published(handle: TableHandle, result: StagedResult) -> str | None:
    """How the table says that it has the files of a result; None if it has not."""
    try:
        NewFiles(handle, result.messages).check(latest_snapshot(handle.storage, handle.layout))
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
