# SPDX-License-Identifier: Apache-2.0
"""Removes orphan files: lists the table, collects the needed files, then deletes the rest.

The listing comes first. So a file that another writer commits meanwhile is kept: it is not in the
listing, or it is among the needed files.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.data_paths import DATA_PATHS
from lakeformat.iceberg.expire.select import require_gc
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import METADATA, is_metadata_file, number_of
from lakeformat.iceberg.orphans.listing import TableListing, list_files
from lakeformat.iceberg.orphans.lost_versions import lost_versions
from lakeformat.iceberg.orphans.references import References
from lakeformat.storage import FileInfo
from lakeformat.storage.links import is_link
from lakeformat.storage.shown import without_credentials
from lakeformat.tables.age_floor import AgeFloor, find_floor
from lakeformat.tables.deleter import Deleter, OnRemoval
from lakeformat.tables.moment import Moment, moment_text
from lakeformat.tables.orphan_report import OrphanFile, OrphanReport
from lakeformat.tables.past_time import PastTime
from lakeformat.tables.removal import FileClass, Removal
from lakeformat.types.count_text import counted

__all__ = ["OrphanOptions", "OrphanSearch", "delete_orphans", "find_orphans", "remove_orphans"]

_USUAL_AGE = timedelta(days=3)
_NAMED_FILES = 1_000
_AT_A_TIME = 1_000
_FEW_FILES = 100
"""If there are at most this many orphan files, their share is not checked."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanOptions:
    """The options of a removal of orphan files."""

    older_than: PastTime | None = None
    running_since: Moment | None = None
    """The start of the oldest write in progress, whose files are kept; None if it is unknown."""
    allow_younger: bool = False
    """True also accepts an ``older_than`` that is less than a day ago, or that is later than
    5 minutes before ``running_since``. This is safe only while no writer is active.
    """
    max_share: float = 0.5
    """The largest share of files or bytes to remove, above 0 and at most 1.

    A larger removal is refused if it has more than 100 files. In a table without snapshots, every
    removal is refused if ``max_share`` is below 1.
    """

    def __post_init__(self) -> None:
        share: object = self.max_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise InvalidRequestError(f"max_share must be above 0 and at most 1, got {share!r}")

    def floor(self, now_millis: int) -> AgeFloor:
        """Return the age limit: files that changed at this time or later are kept.

        The limit is ``older_than``. By default it is the earlier of two times: three days ago, and
        5 minutes before ``running_since``. Raise ``InvalidRequestError`` for a limit that needs
        ``allow_younger=True``.
        """
        found = find_floor(
            now_millis,
            older_than=self.older_than,
            running_since=self.running_since,
            allow_younger=self.allow_younger,
        )
        usual = now_millis - _USUAL_AGE // timedelta(milliseconds=1)
        if self.older_than is not None or found.millis <= usual:
            return found
        return AgeFloor(usual, "files newer than three days are kept for writes in progress")


@dataclass(slots=True)
class OrphanSearch:
    """The files of a table, and the orphan files among them."""

    listing: TableListing
    floor: AgeFloor
    references: References
    objection: str | None = None
    """The reason to refuse the removal; None if it is allowed."""
    beside: tuple[References, ...] = ()
    """The references of other tables that may use files in the directory of this table."""
    orphans: list[FileInfo] = field(default_factory=list)
    young: list[FileInfo] = field(default_factory=list)
    unknown: int = 0

    def is_needed(self, file: FileInfo) -> bool:
        """Return True if the table, or one of the tables in ``beside``, refers to ``file``."""
        if self.references.has(file.path):
            return True
        uri = self.references.current.places.storage.uri(file.path)
        return any(each.has_outside(uri) for each in self.beside)

    def removal(self, file: FileInfo) -> Removal:
        """Return the removal of one file, with its reason."""
        places = self.references.current.places
        reason = (
            f"not referenced by {self.references}; last changed {moment_text(file.modified_millis)}"
        )
        below = file.path.removeprefix(places.root)
        return Removal(places.storage, file.path, _kind(below), reason, file.size)


def remove_orphans(
    handle: TableHandle,
    options: OrphanOptions,
    *,
    dry_run: bool,
    on_progress: OnRemoval | None = None,
) -> OrphanReport:
    """Find orphan files, and remove them unless it is a dry run.

    If the removal is killed, the next run removes the rest. Raise the errors of ``find_orphans``.
    """
    search = find_orphans(handle, options, dry_run=dry_run)
    return delete_orphans(search, dry_run=dry_run, on_progress=on_progress)


def find_orphans(
    handle: TableHandle,
    options: OrphanOptions,
    *,
    dry_run: bool,
    beside: Sequence[TableHandle] = (),
) -> OrphanSearch:
    """Find orphan files; files that the tables ``beside`` use are not orphans.

    Raise ``InvalidRequestError`` for an age limit that needs ``allow_younger=True``. Raise it also
    if the metadata names a file outside of the table that may be the same as an unreferenced file.
    Raise ``UnsupportedError`` if the property ``gc.enabled`` is false.

    Without ``dry_run``, also raise ``InvalidRequestError`` if ``max_share`` does not allow the
    removal or the newest metadata files may be lost, and ``UnsupportedError`` if the table is
    read-only.
    """
    before = handle.load()
    require_gc(before.metadata)
    if not dry_run:
        handle.pointer.require_writable()
    floor = options.floor(handle.environment.now_millis())
    lost = lost_versions(handle)
    listing = list_files(before.places, before.metadata)
    floor = floor.behind(_lag(before, listing.files))
    others = tuple(References.of(each) for each in beside)
    search = OrphanSearch(listing, floor, References.of(handle), beside=others)
    _find(search)
    search.objection = _objection(search, options.max_share)
    if lost is not None and search.orphans:
        search.objection = lost
    if search.objection is not None and not dry_run:
        raise InvalidRequestError(search.objection)
    return search


def delete_orphans(
    search: OrphanSearch, *, dry_run: bool, on_progress: OnRemoval | None = None
) -> OrphanReport:
    """Delete the orphan files of ``search``, except those to which a new commit refers.

    A dry run deletes nothing. Raise ``InvalidRequestError`` if a new commit names a file outside of
    the table that may be the same as an orphan file; some files may then be deleted already.
    """
    deleter = Deleter(dry_run=dry_run, on_progress=on_progress)
    orphans = search.orphans
    for start in range(0, len(orphans), _AT_A_TIME):
        for references in (search.references, *search.beside):
            references.catch_up()
        batch = [each for each in orphans[start : start + _AT_A_TIME] if not search.is_needed(each)]
        search.references.require_no_mismatch(each.path for each in batch)
        deleter.remove(search.removal(each) for each in batch)
    report = _report(search, deleter, dry_run=dry_run)
    _log.info("orphan files of %s: %s", search.references.handle.uri, report.reason)
    return report


def _find(search: OrphanSearch) -> None:
    """Divide unreferenced files into orphans, young files, and links or files of unknown age."""
    references, storage = search.references, search.references.current.places.storage
    newest = number_of(references.current.path)
    unnamed = {
        file.path: newest is None or number >= newest
        for file in search.listing.files
        if (number := number_of(file.name)) is not None and not references.has(file.path)
    }
    references.keep_metadata_files(unnamed)
    for file in search.listing.files:
        if search.is_needed(file):
            continue
        if file.modified_millis <= 0 or is_link(storage, file.path):
            search.unknown += 1
        elif file.modified_millis >= search.floor.millis:
            search.young.append(file)
        else:
            search.orphans.append(file)
    references.require_no_mismatch(each.path for each in (*search.orphans, *search.young))


def _lag(loaded: LoadedMetadata, files: Sequence[FileInfo]) -> int:
    """Return how far the storage's clock is behind the clock of the writers, in milliseconds; 0 if
    unknown.
    """
    modified = [each.modified_millis for each in files if each.path == loaded.path]
    return loaded.metadata.last_updated_ms - modified[0] if modified and modified[0] > 0 else 0


def _kind(below: str) -> FileClass:
    name = below.rpartition("/")[2]
    if is_metadata_file(name):
        return FileClass.METADATA
    if below.startswith(f"/{METADATA}/"):
        if name.endswith(".avro"):
            is_list = name.startswith("snap-")
            return FileClass.MANIFEST_LIST if is_list else FileClass.MANIFEST
        return FileClass.STATISTICS if name.endswith((".stats", ".puffin")) else FileClass.OTHER
    if name.endswith(".puffin") or "-deletes." in name:
        return FileClass.DELETES
    return FileClass.DATA if name.endswith((".parquet", ".orc", ".avro")) else FileClass.OTHER


def _objection(search: OrphanSearch, max_share: float) -> str | None:
    """Return the reason to refuse the removal; None if it is allowed."""
    orphans, files = search.orphans, search.listing.files
    if not orphans or max_share == 1:
        return None
    uri = search.references.handle.uri
    remedy = "check the files of a dry run, and pass max_share=1 if all of them may be deleted"
    if not search.references.current.metadata.snapshots:
        return f"{uri} has no snapshot, so all its files look like orphans: {remedy}"
    share = max(len(orphans) / len(files), _bytes(orphans) / max(_bytes(files), 1))
    if len(orphans) <= _FEW_FILES or share <= max_share:
        return None
    return (
        f"{len(orphans)} of {counted(len(files), 'file')} of {uri} would be removed. By number or "
        f"by size, this is {share:.0%} of the files, more than max_share={max_share:.0%}: "
        f"something may be wrong; {remedy}"
    )


def _bytes(files: Sequence[FileInfo]) -> int:
    return sum(each.size for each in files)


def _report(search: OrphanSearch, deleter: Deleter, *, dry_run: bool) -> OrphanReport:
    deleted, floor, orphans = deleter.deleted, search.floor, search.orphans
    return OrphanReport(
        table=search.references.handle.uri,
        dry_run=dry_run,
        older_than=floor.moment,
        older_than_reason=floor.reason,
        override=floor.override,
        looked_through=str(search.references),
        scanned_files=len(search.listing.files),
        scanned_bytes=_bytes(search.listing.files),
        orphan_files=len(orphans),
        orphan_bytes=_bytes(orphans),
        removed_files=0 if dry_run else deleted.total,
        removed_bytes=0 if dry_run else deleted.bytes,
        removed_directories=0,
        failures=deleted.failures,
        failed=tuple(deleted.failed),
        young_files=len(search.young),
        young_bytes=_bytes(search.young),
        kept_by_commit=None,
        writing_files=0,
        unknown_files=search.unknown,
        external_paths_left_out=_left_out(search),
        objection=search.objection if dry_run else None,
        files=tuple(_named(search)),
        files_left_out=max(len(orphans) - _NAMED_FILES, 0),
        reason=_reason(search, deleter, dry_run=dry_run),
    )


def _named(search: OrphanSearch) -> list[OrphanFile]:
    """Return the first 1,000 orphan files.

    Each has the id of the newest snapshot at the time when the file was last modified. Expired
    snapshots are ignored, so the id can be None.
    """
    snapshots = search.references.current.metadata.snapshots
    times = sorted((each.timestamp_ms, each.snapshot_id) for each in snapshots)
    found = []
    for file in search.orphans[:_NAMED_FILES]:
        removal = search.removal(file)
        at = bisect_right(times, file.modified_millis, key=lambda each: each[0])
        found.append(
            OrphanFile(
                path=removal.uri,
                kind=str(removal.kind),
                size=file.size,
                modified_millis=file.modified_millis,
                newest_snapshot=times[at - 1][1] if at else None,
                reason=removal.reason,
            )
        )
    return found


def _left_out(search: OrphanSearch) -> tuple[str, ...]:
    """Return the directories outside of the table that table properties name for new files.

    The search for orphan files leaves them out.
    """
    loaded = search.references.current
    named = (loaded.metadata.properties.get(name) for name in DATA_PATHS)
    outside = (each for each in named if each and loaded.places.path_below(each) is None)
    return tuple(dict.fromkeys(map(without_credentials, outside)))


def _reason(search: OrphanSearch, deleter: Deleter, *, dry_run: bool) -> str:
    files = counted(len(search.listing.files), "file")
    below, beside = len(search.listing.tables), len(search.references.other_tables)
    skipped = f"; skipped {counted(below, 'directory', 'directories')} of other tables"
    skipped = skipped if below else ""
    shared = f"; kept the files of {counted(beside, 'other table')} in the same directory"
    skipped += shared if beside else ""
    if not search.orphans:
        kept = "referenced or newer than the age limit"
        kept = f"{kept}, or is a link or of unknown age" if search.unknown else kept
        return f"no orphans: each of {files} is {kept}{skipped}"
    if dry_run:
        found = len(search.orphans)
        return f"orphans: {found} of {files}; dry run, so none was removed{skipped}"
    deleted = deleter.deleted
    failed = f", could not remove {deleted.failures}, which the next run tries again"
    failed = failed if deleted.failures else ""
    return f"removed {counted(deleted.total, 'orphan')} of {files}{failed}{skipped}"
