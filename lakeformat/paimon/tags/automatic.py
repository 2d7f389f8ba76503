# SPDX-License-Identifier: Apache-2.0
"""Creates and moves automatic tags.

In the modes ``process-time`` and ``watermark``, each period of time, such as a day, gets at most
one tag. In the mode ``batch``, one tag moves to the newest snapshot; by default, each day has its
own tag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.deletion import OnRemoval
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import Tag, read_tag_if_present, read_tags
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.tags.create import publish_tag, replace_with, retention, utc_now
from lakeformat.paimon.tags.delete import delete
from lakeformat.paimon.tags.due import DueTag, Timed, Timeline, surplus
from lakeformat.paimon.tags.in_use import branches_from, is_protection
from lakeformat.paimon.tags.period import Period, period_of
from lakeformat.paimon.tags.source import Origin
from lakeformat.tables.report import Report

__all__ = ["AutomaticTagsReport", "create_due"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_WATERMARK = -(2**63)
_BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticTagsReport(Report):
    """The automatic tags that were created or moved, and the tags that ``tag.num-retained-max``
    deleted.
    """

    table: str
    created: tuple[str, ...]
    deleted: tuple[str, ...]
    dry_run: bool
    reason: str


def create_due(
    handle: TableHandle, *, dry_run: bool = False, on_progress: OnRemoval | None = None
) -> AutomaticTagsReport:
    """Create or move the tags that are due, then delete the oldest beyond ``tag.num-retained-max``.

    In the mode ``batch``, all tags of the table are counted and may be deleted, except those that
    protect a rollback. Tags at which a branch began are kept. A repeated call creates no tag twice,
    so a schedule may call it as often as you like. Raise InvalidRequestError if
    ``tag.automatic-creation`` is ``none``.
    """
    mode = handle.options.tag_automatic_creation
    if mode == "none":
        raise InvalidRequestError(
            f"{handle.uri} has no automatic tags ('tag.automatic-creation' is 'none'): create a "
            "tag by name, or set the option to 'process-time', 'watermark' or 'batch', for example "
            "with alter_table(…, set_option('tag.automatic-creation', 'process-time'))"
        )
    require_allowed(handle, Operation.TAG)
    made = _batch(handle, dry_run) if mode == _BATCH else _periodic(handle, mode, dry_run)
    gone = _surplus(handle, mode, [due for due in made if dry_run])
    if gone:
        # A dry run has not created the tags that would be deleted at once.
        delete(
            handle,
            gone,
            force=True,
            missing_ok=dry_run,
            dry_run=dry_run,
            on_progress=on_progress,
        )
    return AutomaticTagsReport(
        table=handle.uri,
        created=tuple(due.name for due in made),
        deleted=tuple(gone),
        dry_run=dry_run,
        reason=_reason(made, gone, dry_run),
    )


def _batch(handle: TableHandle, dry_run: bool) -> list[DueTag]:
    """Create the batch tag on the newest snapshot, or move it there, and return it in a list.

    Its name is ``tag.batch.customized-name`` or, by default, contains today's date. A dry run
    changes nothing. Return an empty list if the table has no snapshot, or if the tag already has
    the newest one.
    """
    head = latest_snapshot(handle.storage, handle.layout)
    if head is None:
        return []
    name = _batch_name(handle)
    there = read_tag_if_present(handle.storage, handle.layout, name)
    if there is not None and there.snapshot == head:
        return []
    if not dry_run and there is None:
        publish_tag(handle, _tag(handle, name, head), Origin(head))
    elif not dry_run:
        replace_with(handle, name, Origin(head), force=True)
    return [DueTag(name, head.id)]


def _batch_name(handle: TableHandle) -> str:
    zone = handle.options.sink_process_time_zone
    day = _local(handle.environment.now_millis(), zone).strftime("%Y-%m-%d")
    return handle.options.tag_batch_customized_name or f"batch-write-{day}"


def _periodic(handle: TableHandle, mode: str, dry_run: bool) -> list[DueTag]:
    options, period = handle.options, period_of(handle.options)
    known = _automatic(handle, period)
    last, newest = (known[-1][0], known[-1][1]) if known else (None, None)
    timeline = Timeline(
        period,
        timedelta(milliseconds=options.tag_creation_delay_millis),
        options.tag_automatic_completion,
        None if last is None else last + period.length,
    )
    by_number = {
        snapshot.id: snapshot
        for snapshot in _snapshots_after(handle, 0 if newest is None else newest.snapshot.id)
    }
    timed = [Timed(number, _moment(handle, mode, each)) for number, each in by_number.items()]
    due = timeline.due(timed, [tag.name for _, tag in known])
    if dry_run:
        return due
    return [
        each
        for each in due
        if publish_tag(
            handle,
            _tag(handle, each.name, by_number[each.snapshot_id]),
            Origin(by_number[each.snapshot_id]),
        )
    ]


def _tag(handle: TableHandle, name: str, snapshot: Snapshot) -> Tag:
    retained = retention(handle, None)
    return Tag(name, snapshot, None if retained is None else utc_now(handle), retained)


def _automatic(handle: TableHandle, period: Period) -> list[tuple[datetime, Tag]]:
    """Return the existing automatic tags, each with the start of its period, oldest first."""
    found = []
    for tag in read_tags(handle.storage, handle.layout):
        start = period.start_of(tag.name)
        if start is not None:
            found.append((start, tag))
    return sorted(found, key=lambda each: each[0])


def _surplus(handle: TableHandle, mode: str, coming: Sequence[DueTag]) -> list[str]:
    """Return the names of the oldest tags beyond ``tag.num-retained-max``.

    ``coming`` are the due tags that a dry run does not create; they are counted, too. The batch tag
    of today counts as the newest. Tags at which a branch began are counted, but not returned.
    """
    most = handle.options.tag_num_retained_max
    if most is None:
        return []
    if mode == _BATCH:
        newest = _batch_name(handle)
        found = read_tags(handle.storage, handle.layout)
        tags = sorted(found, key=lambda tag: (tag.name == newest, tag.snapshot.id))
        tags = [tag for tag in tags if not is_protection(tag.name)]
    else:
        tags = [tag for _, tag in _automatic(handle, period_of(handle.options))]
    new = {
        due.name: read_snapshot(handle.storage, handle.layout, due.snapshot_id) for due in coming
    }
    by_name = {tag.name: tag.snapshot for tag in tags if tag.name not in new} | new
    return [name for name in surplus([*by_name], most) if not branches_from(handle, by_name[name])]


def _snapshots_after(handle: TableHandle, number: int) -> Iterator[Snapshot]:
    for each in snapshot_ids(handle.storage, handle.layout):
        if each > number:
            found = read_snapshot_if_present(handle.storage, handle.layout, each)
            if found is not None:
                yield found


def _moment(handle: TableHandle, mode: str, snapshot: Snapshot) -> datetime | None:
    options = handle.options
    if mode == "process-time":
        return _local(snapshot.time_millis, options.sink_process_time_zone)
    if snapshot.watermark in (None, _NO_WATERMARK):
        return None
    return _local(snapshot.watermark or 0, options.sink_watermark_time_zone)


def _local(millis: int, zone: tzinfo) -> datetime:
    try:
        moment = (_EPOCH + timedelta(milliseconds=millis)).astimezone(zone)
    except OverflowError:
        raise InvalidRequestError(
            f"the watermark or time of a snapshot is {millis} ms since 1970, but the name of an "
            "automatic tag can show only the years 1 to 9999; write watermarks in milliseconds "
            "since 1970, or set 'tag.automatic-creation' to 'process-time'"
        ) from None
    return moment.replace(tzinfo=None)


def _reason(made: Sequence[DueTag], gone: Sequence[str], dry_run: bool) -> str:
    if not made and not gone:
        return "no tag is due"
    verb = "would be" if dry_run else "is"
    parts = [f"tag {each.name!r} {verb} snapshot {each.snapshot_id}" for each in made]
    if gone:
        deleted = "would delete" if dry_run else "deleted"
        noun = "tag" if len(gone) == 1 else "tags"
        oldest = f"{noun} {', '.join(map(repr, gone))}"
        parts.append(f"{deleted} {oldest}, because of 'tag.num-retained-max'")
    return "; ".join(parts)
