"""Making tags, and letting a tag mean another snapshot or have another name."""

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
    UnavailableError,
)
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.file_name_part import check_new_file_name_part
from lakeformat.paimon.metadata.tag import (
    Tag,
    create_tag,
    delete_tag,
    read_tag,
    read_tag_if_present,
    read_tags,
    replace_tag,
)
from lakeformat.paimon.options.kinds import ASKED_DURATION
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.tags.in_use import require_found_again, require_unneeded
from lakeformat.paimon.tags.period import period_of
from lakeformat.paimon.tags.source import Origin
from lakeformat.paimon.tags.success_file import remove_success_file, write_success_file
from lakeformat.paimon.tags.tag_report import TagReport

__all__ = [
    "Retain",
    "create",
    "publish_tag",
    "rename",
    "replace_with",
    "retention",
    "utc_now",
]

Retain = timedelta | str
"""For how long a tag is kept: ``"7 d"``."""

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
    """Give a snapshot a name; with ``exist_ok`` a tag that is there stays as it is."""
    check_new_file_name_part("tag name", name)
    require_allowed(handle, Operation.TAG)
    there = read_tag_if_present(handle.storage, handle.layout, name)
    if there is None:
        _refuse_second_automatic(handle, name, origin)
        tag = _tag(handle, name, origin, retention(handle, retain))
        if dry_run:
            origin.require_kept(handle, f"tag {name!r}")
            said = f"tag {name!r} would be snapshot {tag.snapshot.id}{_shadowing(name)}"
            return _report(handle, tag, "created", said, dry_run=True)
        if publish_tag(handle, tag, origin):
            said = f"tag {name!r} is snapshot {tag.snapshot.id}{_shadowing(name)}"
            return _report(handle, tag, "created", said)
        there = read_tag(handle.storage, handle.layout, name)
    if not exist_ok:
        raise AlreadyExistsError(
            f"{handle.uri} has a tag {name!r} already, of snapshot {there.snapshot.id}: choose "
            "another name, or replace the tag if it shall mean another snapshot"
        )
    reason = f"tag {name!r} was there already, of snapshot {there.snapshot.id}"
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
    """Let a tag mean another snapshot, or be kept for another time.

    Nothing is deleted: files that only the old snapshot led to are orphans afterwards.
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
        said = f"tag {name!r} is snapshot {before.snapshot.id} and would be {tag.snapshot.id}"
        return _report(handle, tag, "replaced", said, dry_run=True)
    if before.snapshot == origin.snapshot:
        replace_tag(handle.storage, handle.layout, tag)
    else:
        with _kept_meanwhile(handle, tag, origin):
            replace_tag(handle.storage, handle.layout, tag)
    write_success_file(handle, name)
    reason = f"tag {name!r} was snapshot {before.snapshot.id} and is {tag.snapshot.id} now"
    return _report(handle, tag, "replaced", reason)


@contextmanager
def _kept_meanwhile(handle: TableHandle, tag: Tag, origin: Origin) -> Iterator[None]:
    """A tag of its own keeps the new snapshot before the old one is given up.

    So whoever is refused has lost nothing: both are kept until it is certain. One that a crash
    leaves goes with the next ``expire`` after a day.
    """
    name = f"{_REPLACING}{tag.name}-{handle.environment.new_id()}"
    held = Tag(name, tag.snapshot, utc_now(handle), _REPLACING_TIME)
    _create_once(handle, held)
    try:
        origin.require_kept(handle, f"tag {tag.name!r}")
        yield
    finally:
        delete_tag(handle.storage, handle.layout, name)


def rename(handle: TableHandle, name: str, new_name: str, *, dry_run: bool = False) -> TagReport:
    """Give a tag another name; for a moment it has both, and repeating the call ends that."""
    storage, layout = handle.storage, handle.layout
    check_new_file_name_part("tag name", new_name)
    require_allowed(handle, Operation.TAG)
    there = read_tag_if_present(storage, layout, new_name)
    old = read_tag(storage, layout, name)
    tag = replace(old, name=new_name)
    if name == new_name or (there is not None and there != tag):
        raise AlreadyExistsError(
            f"tag {name!r} of {handle.uri} cannot be called {new_name!r}: there is such a tag "
            "already; choose another name, or delete that tag first"
        )
    if dry_run:
        said = f"tag {name!r} would be called {new_name!r}{_shadowing(new_name)}"
        return _report(handle, tag, "renamed", said, dry_run=True)
    if there is None and not _create_once(handle, tag):
        raise CommitConflictError(
            f"somebody made a tag {new_name!r} of {handle.uri} while {name!r} was renamed: look "
            "at it and choose another name"
        )
    try:  # whoever deletes the old one looks for others after that
        Origin(old.snapshot, name).require_kept(handle, f"tag {new_name!r}")
    except LakeError:
        if there is None:
            delete_tag(storage, layout, new_name)
        raise
    write_success_file(handle, new_name)
    delete_tag(storage, layout, name)
    remove_success_file(handle, name)
    said = f"tag {name!r} is called {new_name!r} now{_shadowing(new_name)}"
    return _report(handle, tag, "renamed", said)


def publish_tag(handle: TableHandle, tag: Tag, origin: Origin) -> bool:
    """Write the file of a tag; False if its name is taken, an error if its snapshot goes."""
    if not _create_once(handle, tag):
        return False
    try:
        origin.require_kept(handle, f"tag {tag.name!r}")
    except LakeError:
        delete_tag(handle.storage, handle.layout, tag.name)
        raise
    write_success_file(handle, tag.name)
    _log.info("tag %r of %s: snapshot %d", tag.name, handle.uri, tag.snapshot.id)
    return True


def _create_once(handle: TableHandle, tag: Tag) -> bool:
    """A lost answer is resolved by reading back."""
    try:
        return create_tag(handle.storage, handle.layout, tag)
    except UnavailableError:
        if read_tag_if_present(handle.storage, handle.layout, tag.name) != tag:
            raise
        return True


def retention(handle: TableHandle, retain: Retain | None) -> timedelta | None:
    """How long a tag is kept: what was said, or what the table says of all tags."""
    if retain is None:
        millis = handle.options.tag_default_time_retained_millis
        return None if millis is None else timedelta(milliseconds=millis)
    if isinstance(retain, str):
        try:
            found = timedelta(milliseconds=ASKED_DURATION.parse(retain))
        except (ValueError, OverflowError) as reason:
            raise InvalidRequestError(
                f"retain is {retain!r}, but must be {ASKED_DURATION.name}: {reason}"
            ) from None
    elif isinstance(retain, timedelta):
        found = retain
    else:
        raise InvalidRequestError(f"retain is a timedelta or a text such as '7 d', got {retain!r}")
    if found <= timedelta(0):
        raise InvalidRequestError(
            f"retain is {retain!r}, but must be longer than nothing: leave it out to keep the tag "
            "for ever"
        )
    return found


def utc_now(handle: TableHandle) -> datetime:
    """The wall clock that tags carry: without a zone, in UTC."""
    now = _EPOCH + timedelta(milliseconds=handle.environment.now_millis())
    return now.replace(tzinfo=None)


def _tag(handle: TableHandle, name: str, origin: Origin, retained: timedelta | None) -> Tag:
    created = None if retained is None else utc_now(handle)
    return Tag(name, origin.snapshot, created, retained)


def _refuse_second_automatic(handle: TableHandle, name: str, origin: Origin) -> None:
    """Whoever restores automatic tags from their names expects one per snapshot."""
    if handle.options.tag_automatic_creation not in ("process-time", "watermark"):
        return
    period = period_of(handle.options)
    if period.start_of(name) is None:
        return
    for tag in read_tags(handle.storage, handle.layout):
        if tag.snapshot.id == origin.snapshot.id and period.start_of(tag.name) is not None:
            raise InvalidRequestError(
                f"{name!r} is a name of an automatic tag ('tag.automatic-creation'), and snapshot "
                f"{tag.snapshot.id} of {handle.uri} has one already, {tag.name!r}: choose a name "
                "of another form"
            )


def _shadowing(name: str) -> str:
    """What to know of a name that could be the number of a snapshot."""
    if not (name.isascii() and name.isdigit()):
        return ""
    return f"; where SQL asks for VERSION AS OF '{name}', it is this tag and not snapshot {name}"


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
