# SPDX-License-Identifier: Apache-2.0
"""Checks the health of a table from the manifests of its snapshots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.compact.other_compactor import find_other_compactor
from lakeformat.paimon.consumers import StalledConsumer, find_stalled
from lakeformat.paimon.expire.retention import changelog_rules, is_decoupled, snapshot_retention
from lakeformat.paimon.expiry_race import again_if_overtaken, explaining_expiry
from lakeformat.paimon.handle import TableHandle, require_no_chain
from lakeformat.paimon.health.files import FileState, target_size
from lakeformat.paimon.health.health_report import (
    DeleteFacts,
    FileFacts,
    HealthReport,
    Holder,
    SnapshotFacts,
    StorageFacts,
    UnknownFiles,
)
from lakeformat.paimon.health.history import KeptFor, Reachable, files_of, find_reachable
from lakeformat.paimon.health.history_reasons import undeleted_share
from lakeformat.paimon.health.misread_options import misread_reasons, without_misread
from lakeformat.paimon.health.notes import find_notes
from lakeformat.paimon.health.outside import outside_reasons
from lakeformat.paimon.health.overdue import Overdue, find_overdue, forgotten_consumers
from lakeformat.paimon.health.reasons import find_reasons
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import read_changelog_if_present
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.referrer import referred_to_by
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import tag_names
from lakeformat.paimon.read.plan import naming_partition, plan_columns
from lakeformat.rows.distinct import number_distinct
from lakeformat.tables.health.score import Score, score
from lakeformat.tables.health.verdict import Reason, in_order, judge
from lakeformat.types.arrow_memory import numbers

__all__ = ["check_health", "due_places"]

WORST_BUCKETS = 10
_MOST_HOLDERS = 10
_DAY_MILLIS = 24 * 60 * 60 * 1000


def check_health(
    handle: TableHandle, *, time_travel: bool = True, unknown: bool = False
) -> HealthReport:
    """Return the health of the table at its newest snapshot.

    ``time_travel`` also reads the changes of each snapshot, to find files that only older snapshots
    need. ``unknown`` also lists the table's directories, to find orphans and missing files. Raise
    UnsupportedError for a chain table, and SnapshotExpiredError if ten attempts fail because the
    newest snapshot changes during the check.
    """
    require_no_chain(handle)
    return again_if_overtaken(handle, lambda: _check(handle, time_travel, unknown))


def _check(handle: TableHandle, time_travel: bool, unknown: bool) -> HealthReport:
    newest = newest_schema(handle)
    misread = misread_reasons(newest)
    handle, newest = without_misread(handle), without_misread(newest)
    listed, unreferenced = _list_unknown(handle) if unknown else (None, None)
    overdue = find_overdue(handle)
    reachable = find_reachable(handle, overdue) if time_travel else None
    snapshot = latest_snapshot(handle.storage, handle.layout)
    snapshots = _snapshot_facts(handle, snapshot, overdue, reachable)
    storage = StorageFacts(unknown=unreferenced)
    if snapshot is None:
        return _of_empty_table(newest, snapshots, storage, misread)
    live = plan_columns(handle, snapshot).columns
    index_files = _index_files(handle, snapshot)
    state = FileState(handle, live, index_files)
    storage = replace(storage, live_bytes=state.live_bytes + _bytes(index_files))
    outside = outside_reasons(newest, live)
    if listed is not None and not outside:
        from lakeformat.paimon.health.lost import find_lost
        from lakeformat.paimon.health.lost_changelogs import find_lost_changelogs

        lost = find_lost(handle, snapshot, listed, live, index_files)
        changes = find_lost_changelogs(handle, listed)
        storage = replace(storage, lost_files=lost, lost_changelog_files=changes)
    if reachable is not None:
        storage = _with_time_travel(storage, reachable, live, index_files)
    with naming_partition(handle, snapshot):
        files, deletes, worst = state.facts(), state.deletes(), state.worst(WORST_BUCKETS)
    undeleted = undeleted_share(files, snapshots, storage, overdue)
    parts = score(state.pending()).with_history(undeleted)
    table = handle.argument
    other = find_other_compactor(newest)
    reasons = in_order(
        *misread,
        *outside,
        *find_reasons(handle, table, files, worst, deletes, snapshots, storage, overdue, other),
    )
    verdict, points = judge(reasons, parts.total, is_empty=False)
    return HealthReport(
        table=handle.name,
        location=handle.uri,
        snapshot_id=snapshot.id,
        verdict=verdict,
        reasons=reasons,
        score=points,
        score_parts=parts,
        score_notes=_score_notes(handle),
        files=files,
        worst_buckets=worst,
        deletes=deletes,
        snapshots=snapshots,
        storage=storage,
        notes=find_notes(newest),
    )


def _list_unknown(handle: TableHandle) -> tuple[pa.Table, UnknownFiles]:
    from lakeformat.paimon.health.unknown import find_unknown, list_files
    from lakeformat.paimon.orphans.references import find_references

    # List the files before the references are read: then files committed in between are referenced.
    listed = list_files(handle)
    return listed, find_unknown(handle, listed, find_references(handle))


def due_places(handle: TableHandle) -> frozenset[tuple[bytes, int]]:
    """Return the buckets that the health report advises to compact.

    Each is a pair: the partition as manifests store it (a framed binary row), and the bucket
    number.
    """
    return again_if_overtaken(handle, lambda: _due_places(handle))


def _due_places(handle: TableHandle) -> frozenset[tuple[bytes, int]]:
    snapshot = latest_snapshot(handle.storage, handle.layout)
    if snapshot is None:
        return frozenset()
    live = plan_columns(handle, snapshot).columns
    return FileState(handle, live, _index_files(handle, snapshot)).due_places()


def _of_empty_table(
    handle: TableHandle,
    snapshots: SnapshotFacts,
    storage: StorageFacts,
    reasons: tuple[Reason, ...],
) -> HealthReport:
    parts = Score()
    verdict, points = judge(reasons, parts.total, is_empty=True)
    return HealthReport(
        table=handle.name,
        location=handle.uri,
        snapshot_id=None,
        verdict=verdict,
        reasons=reasons,
        score=points,
        score_parts=parts,
        score_notes=_score_notes(handle),
        files=FileFacts(target_file_size=target_size(handle)),
        worst_buckets=(),
        deletes=DeleteFacts(),
        snapshots=snapshots,
        storage=storage,
        notes=find_notes(handle),
    )


def _snapshot_facts(
    handle: TableHandle, newest: Snapshot | None, overdue: Overdue, reachable: Reachable | None
) -> SnapshotFacts:
    storage, layout = handle.storage, handle.layout
    facts = SnapshotFacts(
        tags=len(tag_names(storage, layout)), branches=len(branches(storage, layout))
    )
    if newest is None:
        return facts
    ids = snapshot_ids(storage, layout)
    oldest = read_snapshot_if_present(storage, layout, ids[0]) if ids else None
    now = handle.environment.now_millis()
    return replace(
        facts,
        count=len(ids),
        oldest=None if oldest is None else oldest.id,
        newest=newest.id,
        oldest_age_seconds=None if oldest is None else (now - oldest.time_millis) / 1000,
        newest_age_seconds=(now - newest.time_millis) / 1000,
        stalled_consumers=_stalled_consumers(handle, now, overdue),
        overdue=overdue.snapshots.overdue,
        expirable=overdue.snapshots.expirable,
        changelogs=overdue.changelogs.count,
        overdue_changelogs=overdue.changelogs.overdue,
        expirable_changelogs=overdue.changelogs.expirable,
        holders=_holders(handle, overdue, reachable),
        publication=handle.publication_lag(),
    )


def _holders(
    handle: TableHandle, overdue: Overdue, reachable: Reachable | None
) -> tuple[Holder, ...]:
    """Return at most ten tags, branches and consumers that keep snapshots beyond the retention.

    They are sorted by the age of the snapshot that each of them keeps, oldest first. At most one is
    a consumer.
    """
    storage, layout, reader = handle.storage, handle.layout, overdue.reader
    found = [] if reachable is None else [*reachable.holders]
    if reader is not None:
        read = read_snapshot_if_present(storage, layout, reader.next_snapshot)
        read = read or read_changelog_if_present(storage, layout, reader.next_snapshot)
        found += [] if read is None else [Holder(reader.what, read.id, read.time_millis)]
    kept = read_snapshot_if_present(storage, layout, overdue.snapshots.first_kept)
    if kept is None:
        return ()
    older = [each for each in found if each.moment < (kept.time_millis, kept.id)]
    return tuple(sorted(older, key=lambda each: each.moment)[:_MOST_HOLDERS])


def _stalled_consumers(
    handle: TableHandle, now: int, overdue: Overdue
) -> tuple[StalledConsumer, ...]:
    """Return the stalled consumers.

    Consumers of streams into the table, and consumers with a damaged file, are stalled after a day
    without progress. All other consumers belong to readers. These are stalled after a week, or
    after a day if consumers keep many overdue snapshots or changelogs. If the option
    ``consumer.expiration-time`` is set, they are left out, because an expiry deletes them.
    """
    options = handle.options
    may_rest = options.consumer_expiration_time_millis is not None
    soon = None if may_rest or not overdue.held_backlog else _DAY_MILLIS
    only_changelogs = is_decoupled(options) and options.consumer_changelog_only
    try:
        snapshots = None if only_changelogs else snapshot_retention(options, now)
    except InvalidRequestError:
        # The options contradict each other: nothing expires, and an expiry reports the
        # contradiction.
        return ()
    return find_stalled(
        handle,
        snapshots=snapshots,
        changelogs=changelog_rules(options, now),
        without=forgotten_consumers(handle),
        unmoved_for=soon,
    )


def _index_files(handle: TableHandle, snapshot: Snapshot) -> list[IndexManifestEntry]:
    if snapshot.index_manifest is None:
        return []
    who = referred_to_by(f"snapshot {snapshot.id} of {handle.uri}")
    with explaining_expiry(handle, snapshot), who:
        return read_index_manifest(handle.storage, handle.layout, snapshot.index_manifest)


def _bytes(index_files: list[IndexManifestEntry]) -> int:
    return sum({entry.file_name: entry.file_size for entry in index_files}.values())


def _with_time_travel(
    storage: StorageFacts,
    reachable: Reachable,
    live: ManifestColumns,
    index_files: list[IndexManifestEntry],
) -> StorageFacts:
    """Return ``storage`` with the number and bytes of files that the newest snapshot does not need.

    The bytes are summed for each reason to keep files.
    """
    every = pa.concat_tables([*reachable.data, files_of(live, KeptFor.NEWEST)])
    columns = {name: every.column(name).combine_chunks() for name in every.column_names}
    # Arrow's group_by and filters are not used: they load its query engine, and with it pandas.
    files, first = number_distinct([columns[name] for name in ("name", "bucket", "partition")])
    strongest = np.zeros(len(first), np.int8)
    np.maximum.at(strongest, files, numbers(columns["kept_for"]))
    bytes_of = numbers(columns["size"])[first]
    is_past = strongest < KeptFor.NEWEST
    needed = {entry.file_name for entry in index_files}
    index = [kept for name, kept in reachable.index.items() if name not in needed]

    def size_of(kept: KeptFor) -> int:
        of_index = sum(size for size, kept_for in index if kept_for is kept)
        return int(bytes_of[is_past & (strongest == kept)].sum()) + of_index

    sizes = {kept: size_of(kept) for kept in KeptFor}
    return replace(
        storage,
        time_travel_files=int(is_past.sum()) + len(index),
        time_travel_bytes=sum(sizes.values()),
        overdue_bytes=sizes[KeptFor.OVERDUE],
        branch_bytes=sizes[KeptFor.BRANCH],
    )


def _score_notes(handle: TableHandle) -> tuple[str, ...]:
    if handle.schema.primary_keys:
        return (
            "rows_to_merge counts deletes on level 0, but no updates: manifests do not count "
            "updates",
        )
    return ("rows_to_merge does not apply: an append table never merges rows",)
