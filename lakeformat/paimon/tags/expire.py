# SPDX-License-Identifier: Apache-2.0
"""Deletes tags whose retention time has passed."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakeformat.paimon.deletion import OnRemoval
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.tag import Tag, read_tags
from lakeformat.paimon.tags.create import utc_now
from lakeformat.paimon.tags.delete import delete
from lakeformat.paimon.tags.in_use import branches_from, is_over, is_protection, tag_made_millis
from lakeformat.tables.moment import moment_text
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.reference_reports import DeletionReport
from lakeformat.types.count_text import counted

__all__ = ["expire", "expires_at"]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - tags carry a wall clock without a zone


def expire(
    handle: TableHandle,
    *,
    older_than: PastTime | None = None,
    dry_run: bool = False,
    on_progress: OnRemoval | None = None,
) -> DeletionReport:
    """Delete tags whose retention time has passed, and tags created before ``older_than``.

    If ``tag.time-expire-enabled`` is ``false``, the retention time is ignored. Tags at which a
    branch began are kept. Tags that protect a rollback are deleted once they are no longer needed,
    regardless of ``older_than``.
    """
    before = _bound(handle, older_than)
    tags = read_tags(handle.storage, handle.layout)
    over = [tag for tag in tags if _is_over(handle, tag, before)]
    chosen = [tag.name for tag in over if not branches_from(handle, tag.snapshot)]
    many = len(chosen) > 1
    why = f" because {'their' if many else 'its'} retention time has passed"
    none = "no tag has expired"
    if before is not None:
        why += f" or {'they are' if many else 'it is'} older than {moment_text(before)}"
        none += f" or is older than {moment_text(before)}"
    if any(map(is_protection, chosen)):
        why += f" or no rollback needs {'them' if many else 'it'} any more"
    if over:
        none = f"kept {counted(len(over), 'expired tag')} at which branches began"
    return delete(
        handle,
        chosen,
        force=True,
        dry_run=dry_run,
        on_progress=on_progress,
        why=why,
        none=f"{none}; the table has {counted(len(tags), 'tag')}",
    )


def expires_at(tag: Tag) -> datetime | None:
    """Return the time when a tag expires, in UTC without a zone; None if it never does."""
    if tag.create_time is None or tag.time_retained is None:
        return None
    try:
        return tag.create_time + tag.time_retained
    except OverflowError:
        return None


def _is_over(handle: TableHandle, tag: Tag, before: int | None) -> bool:
    if is_protection(tag.name):
        return is_over(handle, tag)
    end = expires_at(tag)
    if handle.options.tag_time_expire_enabled and end is not None and utc_now(handle) > end:
        return True
    return before is not None and _made(handle, tag) < before


def _made(handle: TableHandle, tag: Tag) -> int:
    if tag.create_time is not None:
        return (tag.create_time - _EPOCH) // timedelta(milliseconds=1)
    made = tag_made_millis(handle, tag.name)
    return handle.environment.now_millis() if made is None else made


def _bound(handle: TableHandle, older_than: PastTime | None) -> int | None:
    if older_than is None:
        return None
    return past_millis("older_than", older_than, handle.environment.now_millis())
