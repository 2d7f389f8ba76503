# SPDX-License-Identifier: Apache-2.0
"""Creates, replaces and renames tags."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.tag import (
    Tag,
    create_tag,
    delete_tag,
    read_tag,
    read_tag_if_present,
    read_tags,
    replace_tag,
)
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.tags.in_use import require_found_again, require_unneeded
from lakeformat.paimon.tags.period import period_of
from lakeformat.paimon.tags.source import Origin
from lakeformat.paimon.tags.success_file import remove_success_file, write_success_file
from lakeformat.tables.file_name_part import check_new_file_name_part
from lakeformat.tables.reference_reports import TagReport
from lakeformat.tables.retain import Retain, to_retained
from lakeformat.types.duration_text import exact_duration

__all__ = [
    "create",
    "publish_tag",
    "rename",
    "replace_with",
    "retention",
    "utc_now",
]

_REPLACING = "replacing-"
_REPLACING_TIME = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_log = logging.getLogger(__name__)


def create(
    handle: TableHandle,
    name: str,
    origin: Origin,
    *,
    retain: Retain | None = None,
    exist_ok: bool = False,
    dry_run: bool = False,
) -> TagReport:
    """Create a tag of the snapshot ``origin``; with ``exist_ok`` an existing tag is kept.

    Raise AlreadyExistsError without ``exist_ok`` for an existing tag, and CommitConflictError if
    the snapshot is being deleted. Raise NotFoundError if the table was dropped or created again.
    """
    check_new_file_name_part("tag name", name)
    require_allowed(handle, Operation.TAG)
    require_same_table(handle)
    there = read_tag_if_present(handle.storage, handle.layout, name)
    if there is None:
        _refuse_second_automatic(handle, name, origin)
        tag = _tag(handle, name, origin, retention(handle, retain))
        if dry_run:
            origin.require_kept(handle, f"tag {name!r}")
            reason = f"tag {name!r} would be snapshot {tag.snapshot.id}{_shadowing(name)}"
            return _report(handle, tag, "created", reason, dry_run=True)
        if publish_tag(handle, tag, origin):
            reason = f"tag {name!r} is snapshot {tag.snapshot.id}{_shadowing(name)}"
            return _report(handle, tag, "created", reason)
        there = read_tag(handle.storage, handle.layout, name)
    if not exist_ok:
        raise AlreadyExistsError(
            f"{handle.uri} already has a tag {name!r} of snapshot {there.snapshot.id}: choose "
            "another name, or replace the tag to move it"
        )
    reason = f"tag {name!r} of snapshot {there.snapshot.id} already existed"
    return _report(handle, there, "kept", reason, dry_run=dry_run)


def replace_with(
    handle: TableHandle,
    name: str,
    origin: Origin,
    *,
    retain: Retain | None = None,
    force: bool = False,
    dry_run: bool = False,
) -> TagReport:
    """Move a tag to another snapshot, or change the time after which it expires.

    Nothing is deleted: files that only the old snapshot needed become orphans. Raise NotFoundError
    if there is no such tag, or if the table was created again meanwhile. Raise InvalidRequestError
    without ``force`` if the tag is in use, and would move to another snapshot. Even with ``force``,
    raise it if an expiry could then delete files that a rollback restored.
    """
    require_allowed(handle, Operation.TAG)
    before = read_tag(handle.storage, handle.layout, name)
    if before.snapshot != origin.snapshot:
        if not force:
            require_unneeded(handle, before, "replacing")
        require_found_again(handle, before)
    tag = _tag(handle, name, origin, retention(handle, retain))
    if dry_run:
        origin.require_kept(handle, f"tag {name!r}")
        reason = f"tag {name!r} would move from snapshot {before.snapshot.id} to {tag.snapshot.id}"
        if before.snapshot == origin.snapshot:
            reason = f"tag {name!r} would keep {_kept_text(tag)}"
        return _report(handle, tag, "replaced", reason, dry_run=True)
    if before.snapshot == origin.snapshot:
        _replace(handle, tag)
    else:
        with _kept_meanwhile(handle, tag, origin):
            _replace(handle, tag)
    write_success_file(handle, name)
    handle.observe_upkeep()
    reason = f"tag {name!r} moved from snapshot {before.snapshot.id} to {tag.snapshot.id}"
    if before.snapshot == origin.snapshot:
        reason = f"tag {name!r} keeps {_kept_text(tag)}"
    return _report(handle, tag, "replaced", reason)


def _replace(handle: TableHandle, tag: Tag) -> None:
    """Replace the file of a tag.

    If the table was dropped, renamed or created again meanwhile, delete the file and raise
    NotFoundError.
    """
    storage, layout = handle.storage, handle.layout
    replace_tag(storage, layout, tag)
    try:
        require_same_table(handle)
    except NotFoundError:
        if read_tag_if_present(storage, layout, tag.name) == tag:
            delete_tag(storage, layout, tag.name)
        raise


@contextmanager
def _kept_meanwhile(handle: TableHandle, tag: Tag, origin: Origin) -> Iterator[None]:
    """Protect the new snapshot by a temporary tag while the block moves ``tag`` to this snapshot.

    If the block fails, ``tag`` still has the old snapshot. If a crash leaves the temporary tag
    behind, ``expire`` deletes it after one day.
    """
    name = f"{_REPLACING}{tag.name}-{handle.environment.new_id()}"
    held = Tag(name, tag.snapshot, utc_now(handle), _REPLACING_TIME)
    create_tag(handle.storage, handle.layout, held)
    try:
        origin.require_kept(handle, f"tag {tag.name!r}")
        yield
    finally:
        delete_tag(handle.storage, handle.layout, name)


def rename(handle: TableHandle, name: str, new_name: str, *, dry_run: bool = False) -> TagReport:
    """Rename a tag; for a moment the snapshot has both tags. After a crash, repeat the call.

    Raise NotFoundError if there is no such tag, and AlreadyExistsError if the new name is taken.
    Raise CommitConflictError if another program takes the name, or deletes the tag, meanwhile.
    """
    storage, layout = handle.storage, handle.layout
    check_new_file_name_part("tag name", new_name)
    require_allowed(handle, Operation.TAG)
    there = read_tag_if_present(storage, layout, new_name)
    old = read_tag(storage, layout, name)
    tag = replace(old, name=new_name)
    if name == new_name or (there is not None and there != tag):
        other = "" if name == new_name else ", or delete that tag first"
        raise AlreadyExistsError(
            f"tag {name!r} of {handle.uri} cannot be renamed to {new_name!r}, which already "
            f"exists: choose another name{other}"
        )
    if dry_run:
        reason = f"tag {name!r} would be renamed to {new_name!r}{_shadowing(new_name)}"
        return _report(handle, tag, "renamed", reason, dry_run=True)
    if there is None and not create_tag(storage, layout, tag):
        raise CommitConflictError(
            f"another program created tag {new_name!r} of {handle.uri} while {name!r} was renamed; "
            f"{name!r} keeps its name. Look at tag {new_name!r}, or choose another name"
        )
    try:  # from now on, a deletion of the old tag finds the new tag
        Origin(old.snapshot, name).require_kept(handle, f"tag {new_name!r}")
    except LakeError:
        if there is None:
            delete_tag(storage, layout, new_name)
        raise
    write_success_file(handle, new_name)
    delete_tag(storage, layout, name)
    remove_success_file(handle, name)
    handle.observe_upkeep()
    reason = f"renamed tag {name!r} to {new_name!r}{_shadowing(new_name)}"
    return _report(handle, tag, "renamed", reason)


def publish_tag(handle: TableHandle, tag: Tag, origin: Origin) -> bool:
    """Write the file of a new tag; return False if another tag has its name.

    Raise CommitConflictError if the snapshot ``origin`` is being deleted.
    """
    if not create_tag(handle.storage, handle.layout, tag):
        return False
    try:
        origin.require_kept(handle, f"tag {tag.name!r}")
    except LakeError:
        delete_tag(handle.storage, handle.layout, tag.name)
        raise
    write_success_file(handle, tag.name)
    handle.observe_upkeep()
    _log.info("created tag %r of %s at snapshot %d", tag.name, handle.uri, tag.snapshot.id)
    return True


def retention(handle: TableHandle, retain: Retain | None) -> timedelta | None:
    """Return how long a tag is kept; None means for ever.

    ``retain`` is the duration that the caller passed. If it is None, the option
    ``tag.default-time-retained`` decides.
    """
    if retain is None:
        millis = handle.options.tag_default_time_retained_millis
        return None if millis is None else timedelta(milliseconds=millis)
    return to_retained(retain)


def utc_now(handle: TableHandle) -> datetime:
    """Return the current time as tags store it: in UTC without a zone."""
    now = _EPOCH + timedelta(milliseconds=handle.environment.now_millis())
    return now.replace(tzinfo=None)


def _tag(handle: TableHandle, name: str, origin: Origin, retained: timedelta | None) -> Tag:
    created = None if retained is None else utc_now(handle)
    return Tag(name, origin.snapshot, created, retained)


def _refuse_second_automatic(handle: TableHandle, name: str, origin: Origin) -> None:
    """Raise InvalidRequestError for a second automatic tag of a snapshot: programs expect only
    one.
    """
    if handle.options.tag_automatic_creation not in ("process-time", "watermark"):
        return
    period = period_of(handle.options)
    if period.start_of(name) is None:
        return
    for tag in read_tags(handle.storage, handle.layout):
        if tag.snapshot.id == origin.snapshot.id and period.start_of(tag.name) is not None:
            raise InvalidRequestError(
                f"snapshot {tag.snapshot.id} of {handle.uri} already has the automatic tag "
                f"{tag.name!r}, and {name!r} is a name for automatic tags, too "
                "('tag.automatic-creation'). A snapshot can have only one automatic tag. Choose a "
                "name that is not a date or time, such as 'release-1'"
            )


def _shadowing(name: str) -> str:
    """Return a warning for a tag name that looks like a snapshot number, otherwise ``""``."""
    if not (name.isascii() and name.isdigit()):
        return ""
    return f"; in SQL, VERSION AS OF '{name}' means a tag of this name, not snapshot {name}"


def _kept_text(tag: Tag) -> str:
    if tag.time_retained is None:
        return f"snapshot {tag.snapshot.id} without a time limit"
    millis = tag.time_retained // timedelta(milliseconds=1)
    return f"snapshot {tag.snapshot.id} for {exact_duration(millis)}"


def _report(
    handle: TableHandle, tag: Tag, action: str, reason: str, *, dry_run: bool = False
) -> TagReport:
    retained = None if tag.time_retained is None else tag.time_retained.total_seconds()
    return TagReport(
        table=handle.uri,
        tag=tag.name,
        action=action,
        snapshot_id=tag.snapshot.id,
        retained_seconds=retained,
        reason=reason,
        dry_run=dry_run,
    )
