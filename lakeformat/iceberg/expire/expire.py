# SPDX-License-Identifier: Apache-2.0
"""Expires snapshots: a commit removes the snapshots, then the files that only they needed are
deleted.

After the commit no writer can use an expired snapshot. If the process crashes before all files are
deleted, the rest are orphan files, which damage nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.expire.exclusive_files import ExclusiveFiles, find_exclusive_files
from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.iceberg.expire.select import Needed, Selection, Unread, require_gc, select
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import BRANCH
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.references.branch_records import forget_branch
from lakeformat.iceberg.retention import retention_of
from lakeformat.tables.deleter import Deleter, OnRemoval
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.removal import Removal
from lakeformat.types.count_text import counted
from lakeformat.types.type_rules import is_whole_number

__all__ = ["ExpiryRequest", "expire_snapshots"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """The arguments of an expiry.

    If ``older_than`` or ``retain_min`` is None, a table property is used.
    """

    older_than: PastTime | None = None
    retain_min: int | None = None
    snapshots: Collection[int] = ()
    clean_metadata: bool = False
    delete_files: bool = True
    unread: Unread = lambda _: ()
    """Returns the ids of the snapshots that a consumer of a kept branch has not read yet."""
    needed: Needed | None = None
    """Returns those of the given snapshot ids that the table still needs. If the attribute is None,
    the table needs none.
    """

    def select(self, loaded: LoadedMetadata, now_millis: int) -> Selection:
        """Return the snapshots, branches and tags that expire in one state of the table.

        Raise ``InvalidRequestError`` for wrong arguments or properties, and ``UnsupportedError`` if
        the property ``gc.enabled`` is false.
        """
        least = self.retain_min
        if least is not None and (not is_whole_number(least) or least < 1):
            raise InvalidRequestError(f"retain_min must be a whole number from 1, got {least!r}")
        require_gc(loaded.metadata)
        oldest = None
        if self.older_than is not None:
            oldest = past_millis("older_than", self.older_than, now_millis)
        retention = retention_of(
            loaded.metadata.properties, now_millis, oldest_millis=oldest, least=least
        )
        return select(
            loaded,
            retention,
            self.snapshots,
            self.unread,
            needed=self.needed,
            clean_metadata=self.clean_metadata,
        )


def expire_snapshots(
    handle: TableHandle,
    request: ExpiryRequest,
    *,
    dry_run: bool,
    on_progress: OnRemoval | None = None,
) -> IcebergExpireReport:
    """Expire snapshots by the rules of Java, and delete files that only expired snapshots needed.

    A dry run only reports them. Files that cannot be deleted are counted and logged. Raise the same
    errors as ``ExpiryRequest.select``.
    """
    selections: list[Selection] = []

    def change(loaded: LoadedMetadata) -> TableMetadata | None:
        selections.append(request.select(loaded, handle.environment.now_millis()))
        chosen = selections[-1]
        return None if chosen.metadata is loaded.metadata else chosen.metadata

    published = None
    if dry_run:
        change(handle.load())
    else:
        published = commit_metadata(handle, change).loaded.metadata
    chosen = selections[-1]
    if published is not None:
        _forget_branches(handle, chosen)
    removals: list[Removal] = []
    listener = removals.append if dry_run and on_progress is None else on_progress
    deleter = Deleter(
        dry_run=dry_run, on_progress=listener, later="A removal of orphans deletes it later"
    )
    files = ExclusiveFiles()
    if request.delete_files and chosen.snapshots:
        files = _find(chosen, published)
        for step in files.steps:
            deleter.remove(step)
    report = _report(handle, chosen, deleter, files, dry_run=dry_run)
    _log.info("expiry of %s: %s", handle.uri, report.reason)
    return replace(report, removals=tuple(removals))


def _forget_branches(handle: TableHandle, chosen: Selection) -> None:
    before = chosen.loaded.metadata.references
    for name in chosen.references:
        if before[name].type == BRANCH:
            forget_branch(handle, name)


def _find(chosen: Selection, published: TableMetadata | None) -> ExclusiveFiles:
    """Return the files to delete; ``published`` is the metadata after the commit, if there is one.

    With a REST catalog, ``published`` may have snapshots of new branches that other writers have
    added. Their files are kept. If the search fails after the commit, its error gets a note that
    ``remove_orphans`` deletes the files.
    """
    after = chosen.metadata
    if published is not None:
        needed = {each.snapshot_id: each for each in (*after.snapshots, *published.snapshots)}
        after = replace(after, snapshots=tuple(needed.values()))
    try:
        return find_exclusive_files(chosen.loaded, after)
    except LakeError as error:
        if published is not None:
            error.add_note(
                f"{counted(len(chosen.snapshots), 'snapshot has', 'snapshots have')} expired, but "
                "the files that only expired snapshots needed were not deleted. These files are "
                "orphans now: remove_orphans deletes them"
            )
        raise


def _report(
    handle: TableHandle,
    chosen: Selection,
    deleter: Deleter,
    files: ExclusiveFiles,
    *,
    dry_run: bool,
) -> IcebergExpireReport:
    before, after = chosen.loaded.metadata, chosen.metadata
    kept = [(each.timestamp_ms, each.snapshot_id) for each in after.snapshots]
    return IcebergExpireReport(
        table=handle.uri,
        dry_run=dry_run,
        snapshots=chosen.snapshots,
        references=chosen.references,
        earliest_snapshot=min(kept)[1] if kept else None,
        deleted=deleter.deleted,
        outside=files.outside,
        held=chosen.held,
        needed=chosen.needed,
        schemas=len(before.schemas) - len(after.schemas),
        partition_specs=len(before.partition_specs) - len(after.partition_specs),
    )
