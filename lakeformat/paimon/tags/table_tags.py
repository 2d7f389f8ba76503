# SPDX-License-Identifier: Apache-2.0
"""``table.tags``: lists, creates, replaces, renames and deletes the tags of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.deletion import OnRemoval
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.tag import Tag, read_tags
from lakeformat.paimon.tags.automatic import AutomaticTagsReport, create_due
from lakeformat.paimon.tags.create import create, rename, replace_with
from lakeformat.paimon.tags.delete import delete
from lakeformat.paimon.tags.expire import expire, expires_at
from lakeformat.paimon.tags.source import find_origin
from lakeformat.tables.moment import Moment, iso_text
from lakeformat.tables.past_time import PastTime
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.reference_reports import DeletionReport, TagReport
from lakeformat.tables.retain import Retain
from lakeformat.tables.table import offer_arguments
from lakeformat.types.duration_text import java_duration

__all__ = ["TableTags", "TagInfo"]


@dataclass(frozen=True, slots=True)
class TagInfo:
    """One tag, as ``table.tags.list()`` returns it."""

    name: str
    snapshot_id: int
    schema_id: int
    commit_millis: int
    """The commit time of the tag's snapshot, in epoch milliseconds."""
    rows: int
    created: str | None = None
    """Creation time in UTC; None for a tag without a retention time."""
    retained: timedelta | None = None
    expires: str | None = None
    """Expiry time in UTC; None for never."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain values, ready for JSON.

        The keys are the columns of ``$tags``, and ``expire_time``.
        """
        return {
            "tag_name": self.name,
            "snapshot_id": self.snapshot_id,
            "schema_id": self.schema_id,
            "commit_time": iso_text(self.commit_millis),
            "record_count": self.rows,
            "create_time": None if self.created is None else self.created.replace(" ", "T"),
            "time_retained": None if self.retained is None else java_duration(self.retained),
            "expire_time": None if self.expires is None else self.expires.replace(" ", "T"),
        }


@offer_arguments
@dataclass(frozen=True, slots=True)
class TableTags:
    """The tags of one table, or of one of its branches."""

    _handle: TableHandle

    def list(self) -> Sequence[TagInfo]:
        """Return every tag, sorted by name."""
        handle = self._handle
        threads = handle.options.file_operation_threads
        return [_info(tag) for tag in read_tags(handle.storage, handle.layout, threads)]

    def create(
        self,
        name: str,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        at_or_after: Moment | None = None,
        watermark: int | None = None,
        retain: Retain | None = None,
        exist_ok: bool = False,
        dry_run: bool = False,
    ) -> TagReport:
        """Create a tag of the newest snapshot, or of a chosen snapshot.

        The rows remain readable by the tag's name after the snapshot expires. ``snapshot`` chooses
        by number or position, also if only a tag keeps the snapshot; ``tag`` chooses the snapshot
        of an existing tag. ``at_or_after`` chooses the first snapshot committed at that time or
        later. ``watermark`` (epoch milliseconds) chooses the first snapshot with this watermark or
        a later one. ``expire`` deletes the tag after the time ``retain`` (``"7 d"``), which
        defaults to the table option ``tag.default-time-retained``. Raise NotFoundError if there is
        no such snapshot, and AlreadyExistsError if the tag exists, unless ``exist_ok`` is set.
        """
        origin = find_origin(
            self._handle, snapshot=snapshot, tag=tag, at_or_after=at_or_after, watermark=watermark
        )
        return create(self._handle, name, origin, retain=retain, exist_ok=exist_ok, dry_run=dry_run)

    def replace(
        self,
        name: str,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        retain: Retain | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> TagReport:
        """Move a tag to another snapshot, by default to the newest.

        The tag gets the retention time ``retain``, which defaults to the table option
        ``tag.default-time-retained``: its earlier retention time is not kept. Files that only the
        old snapshot needed become orphans. Raise NotFoundError if there is no such tag. Raise
        InvalidRequestError without ``force`` if a branch began at the tag, or if the tag protects a
        rollback. Even with ``force``, raise it if this library's expiry needs the tag.
        """
        origin = find_origin(self._handle, snapshot=snapshot, tag=tag)
        return replace_with(self._handle, name, origin, retain=retain, force=force, dry_run=dry_run)

    def rename(self, name: str, new_name: str, *, dry_run: bool = False) -> TagReport:
        """Rename a tag.

        Raise NotFoundError if there is no such tag, and AlreadyExistsError if another tag has the
        new name.
        """
        return rename(self._handle, name, new_name, dry_run=dry_run)

    @renamed_argument("tell", "on_progress")
    def delete(
        self,
        *names: str,
        force: bool = False,
        missing_ok: bool = False,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
    ) -> DeletionReport:
        """Delete tags and the files that only these tags needed.

        A tag at which a branch began, or which protects a rollback, raises InvalidRequestError
        without ``force``. If this library's expiry needs that tag, the error is raised even with
        ``force``. A missing tag raises NotFoundError without ``missing_ok``, before any tag is
        deleted. ``on_progress`` is called with each file that is deleted, or planned by a dry run,
        and the reason. Files that could not be deleted are removed by the next deletion.
        """
        return delete(
            self._handle,
            names,
            force=force,
            missing_ok=missing_ok,
            dry_run=dry_run,
            on_progress=on_progress,
        )

    @renamed_argument("tell", "on_progress")
    def expire(
        self,
        *,
        older_than: PastTime | None = None,
        dry_run: bool = False,
        on_progress: OnRemoval | None = None,
    ) -> DeletionReport:
        """Delete tags whose retention time has passed, and tags created before ``older_than``.

        ``older_than`` is a time, or an age such as ``"30 d"``. If ``tag.time-expire-enabled`` is
        ``false``, the retention time is ignored. Tags at which a branch began are kept. A tag that
        protects a rollback is deleted once no rollback needs it, regardless of its age.
        """
        return expire(self._handle, older_than=older_than, dry_run=dry_run, on_progress=on_progress)

    @renamed_argument("tell", "on_progress")
    def create_due(
        self, *, dry_run: bool = False, on_progress: OnRemoval | None = None
    ) -> AutomaticTagsReport:
        """Create or move the automatic tags that are due by ``tag.automatic-creation``.

        Then delete the oldest of these tags beyond ``tag.num-retained-max``, except tags at which a
        branch began. In the mode ``batch``, all tags of the table are counted and may be deleted,
        except those that protect a rollback. Raise InvalidRequestError if
        ``tag.automatic-creation`` is ``none``.
        """
        return create_due(self._handle, dry_run=dry_run, on_progress=on_progress)


def _info(tag: Tag) -> TagInfo:
    end = expires_at(tag)
    return TagInfo(
        name=tag.name,
        snapshot_id=tag.snapshot.id,
        schema_id=tag.snapshot.schema_id,
        commit_millis=tag.snapshot.time_millis,
        rows=tag.snapshot.total_record_count,
        created=None if tag.create_time is None else tag.create_time.isoformat(" ", "milliseconds"),
        retained=tag.time_retained,
        expires=None if end is None else end.isoformat(" ", "milliseconds"),
    )
