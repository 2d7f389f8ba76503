# SPDX-License-Identifier: Apache-2.0
"""The methods of ``table.tags``: list, create, replace, rename, delete and expire tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.choice import snapshot_text
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.snapshot import TAG, Reference, Snapshot
from lakeformat.iceberg.references.change import (
    Plan,
    Retention,
    create_reference,
    publish,
    rename_reference,
    replace_reference,
)
from lakeformat.iceberg.references.delete import delete_references
from lakeformat.iceberg.references.expire_tags import expire_tags
from lakeformat.iceberg.references.origin import Origin
from lakeformat.tables.moment import Moment, iso_text
from lakeformat.tables.past_time import PastTime
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.reference_reports import DeletionReport, TagReport
from lakeformat.tables.retain import Retain
from lakeformat.tables.table import offer_arguments
from lakeformat.types.duration_text import java_duration

__all__ = ["TableTags", "TagInfo"]

_FOR_EVER = 1 << 47
"""Thousands of years in milliseconds. A tag with a higher age limit is shown as one that never
expires.
"""


@dataclass(frozen=True, slots=True)
class TagInfo:
    """A tag in a listing."""

    name: str
    snapshot_id: int
    schema_id: int | None
    commit_millis: int
    """The commit time of the tag's snapshot, in epoch milliseconds."""
    rows: int | None
    """The number of rows; None if the snapshot has delete files, or if its writer did not count
    rows."""
    retained: timedelta | None = None
    """An expiry removes the tag when its snapshot is older than this. None if the tag never
    expires, or if the table properties decide.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        expires = None
        if self.retained is not None:
            expires = iso_text(self.commit_millis + self.retained // timedelta(milliseconds=1))
        return {
            "tag_name": self.name,
            "snapshot_id": self.snapshot_id,
            "schema_id": self.schema_id,
            "commit_time": iso_text(self.commit_millis),
            "record_count": self.rows,
            "time_retained": None if self.retained is None else java_duration(self.retained),
            "expire_time": expires,
        }


@offer_arguments
@dataclass(frozen=True, slots=True)
class TableTags:
    """The tags of one table."""

    _handle: TableHandle

    def list(self) -> Sequence[TagInfo]:
        """Return all tags, sorted by name."""
        metadata = self._handle.load().metadata
        tags = [each for each in metadata.references.values() if each.type == TAG]
        return [
            _info(each, snapshot)
            for each in sorted(tags, key=lambda tag: tag.name)
            if (snapshot := metadata.snapshot(each.snapshot_id)) is not None
        ]

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
        """Create a tag, which keeps a snapshot from expiring; by default the newest snapshot.

        ``snapshot`` is an id or a position. ``tag`` chooses the snapshot of another tag.
        ``at_or_after`` chooses the first snapshot that was committed at that time or later. An
        expiry removes the tag when its snapshot is older than ``retain``, such as ``"7 d"``. Raise
        ``AlreadyExistsError`` if the name exists; with ``exist_ok``, only if a branch has it. Raise
        ``NotFoundError`` if the snapshot does not exist, and ``UnsupportedError`` for a
        ``watermark``.
        """
        origin = Origin(self._handle.branch, snapshot, tag, at_or_after, watermark)
        plan = create_reference(
            self._handle, TAG, name, origin, Retention(retain), exist_ok=exist_ok
        )
        return self._changed(plan, dry_run=dry_run)

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
        """Move a tag to another snapshot; by default to the newest snapshot.

        The tag gets the retention ``retain``; by default the table properties decide.
        ``force`` has no effect, because no branch of an Iceberg table depends on a tag. Raise
        ``NotFoundError`` if the tag or snapshot does not exist.
        """
        origin = Origin(self._handle.branch, snapshot, tag)
        plan = replace_reference(self._handle, TAG, name, origin, Retention(retain))
        return self._changed(plan, dry_run=dry_run)

    def rename(self, name: str, new_name: str, *, dry_run: bool = False) -> TagReport:
        """Rename a tag.

        Raise ``NotFoundError`` if ``name`` does not exist, and ``AlreadyExistsError`` if
        ``new_name`` exists.
        """
        plan = rename_reference(self._handle, TAG, name, new_name)
        return self._changed(plan, dry_run=dry_run)

    def delete(
        self,
        *names: str,
        force: bool = False,
        missing_ok: bool = False,
        dry_run: bool = False,
        on_progress: Callable[..., object] | None = None,
    ) -> DeletionReport:
        """Delete tags. The next expiry removes the snapshots and files that only these tags needed.

        If a tag does not exist, raise ``NotFoundError`` and delete no tag. With ``missing_ok``
        raise it only if the name belongs to a branch. ``force`` has no effect, because no branch of
        an Iceberg table depends on a tag. ``on_progress`` has no effect, because no file is
        deleted.
        """
        return delete_references(self._handle, TAG, names, missing_ok=missing_ok, dry_run=dry_run)

    def expire(
        self,
        *,
        older_than: PastTime | None = None,
        dry_run: bool = False,
        on_progress: Callable[..., object] | None = None,
    ) -> DeletionReport:
        """Delete tags whose snapshot is older than their ``retain``, or older than ``older_than``.

        Tags without ``retain`` follow the property ``history.expire.max-ref-age-ms``, which is
        unlimited by default. ``on_progress`` has no effect, because no file is deleted.
        """
        return expire_tags(self._handle, older_than=older_than, dry_run=dry_run)

    def create_due(self, *, dry_run: bool = False, on_progress: object = None) -> NoReturn:
        """Raise ``UnsupportedError``: Iceberg tables have no option for automatic tags."""
        raise UnsupportedError(
            f"{self._handle.uri} is an Iceberg table, which has no automatic tags: create tags on "
            "a schedule of your own, with tags.create(name)"
        )

    def _changed(self, plan: Plan, *, dry_run: bool) -> TagReport:
        done = publish(self._handle, plan, dry_run=dry_run)
        age, tag = done.reference.max_ref_age_ms, done.reference
        would = "would be " if dry_run and done.action != "kept" else ""
        return TagReport(
            table=self._handle.uri,
            tag=tag.name,
            action=done.action,
            snapshot_id=tag.snapshot_id,
            retained_seconds=None if age is None else age / 1000,
            reason=f"tag {tag.name!r} {would}{done.action} at {snapshot_text(done.snapshot)}",
            dry_run=dry_run,
        )


def _info(tag: Reference, snapshot: Snapshot) -> TagInfo:
    rows, age = snapshot.summary.get("total-records", ""), tag.max_ref_age_ms
    exact = rows.isdecimal() and snapshot.summary.get("total-delete-files", "0") == "0"
    return TagInfo(
        name=tag.name,
        snapshot_id=tag.snapshot_id,
        schema_id=snapshot.schema_id,
        commit_millis=snapshot.timestamp_ms,
        rows=int(rows) if exact else None,
        retained=None if age is None or age > _FOR_EVER else timedelta(milliseconds=age),
    )
