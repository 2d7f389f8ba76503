# SPDX-License-Identifier: Apache-2.0
"""Examines the health of an Iceberg table: its newest snapshot, and the files that older snapshots
keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.health.health_report import (
    DataFileFacts,
    DeleteFacts,
    HistoryFacts,
    IcebergHealthReport,
    ManifestFacts,
    PartitionFacts,
)
from lakeformat.iceberg.health.live_files import LiveFiles
from lakeformat.iceberg.health.reasons import Cures, find_reasons, overdue_share
from lakeformat.iceberg.health.settings import HealthSettings, settings_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA, read_manifest_list
from lakeformat.iceberg.metadata.metadata_file import METADATA, is_metadata_file
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.delete_index import FILE_PATH_ID
from lakeformat.iceberg.retention import overdue_snapshots, retention_of
from lakeformat.tables.health.numbers import StorageNumbers
from lakeformat.tables.health.score import Score, score
from lakeformat.tables.health.verdict import in_order, judge
from lakeformat.tables.parallel import in_parallel

__all__ = ["check_health"]

_WORST_PARTITIONS = 10
_TOGETHER = 32
"""Manifest lists are read in batches of this size. Manifests are divided into groups of this size,
and each group is read by one thread.
"""
_DELETES = 1
"""The value of ``content`` for a manifest of delete files."""


def check_health(
    loaded: LoadedMetadata,
    snapshot: Snapshot | None,
    cures: Cures,
    now_millis: int,
    *,
    time_travel: bool,
) -> IcebergHealthReport:
    """Return the health of a table at ``snapshot``, the newest snapshot of its branch.

    ``snapshot`` is None before the first commit. With ``time_travel`` the manifests of all older
    snapshots are read, and the metadata files are listed.
    """
    settings = settings_of(loaded.metadata.properties)
    manifests = _manifests_of(loaded, snapshot)
    by_spec = _live(loaded, manifests)
    files, deletes = DataFileFacts(target_file_size=settings.target_file_size), DeleteFacts()
    worst: tuple[PartitionFacts, ...] = ()
    storage, parts = StorageNumbers(), Score()
    if by_spec:
        live = LiveFiles(loaded.metadata, by_spec, settings.target_file_size)
        files, worst, deletes = live.facts(), live.worst(_WORST_PARTITIONS), live.deletes()
        storage = StorageNumbers(live_bytes=pc.sum(_files_of(by_spec).column("size")).as_py())
        parts = score(live.pending())
    history = _history(loaded, snapshot, now_millis, time_travel=time_travel)
    if time_travel:
        storage = _with_time_travel(loaded, manifests, by_spec, storage)
    of_manifests = _manifest_facts(manifests, settings)
    parts = parts.with_history(overdue_share(settings, history))
    reasons = in_order(*find_reasons(cures, settings, files, worst, deletes, of_manifests, history))
    verdict, points = judge(reasons, parts.total, is_empty=snapshot is None)
    return IcebergHealthReport(
        table=loaded.places.uri,
        location=loaded.places.uri,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        verdict=verdict,
        reasons=reasons,
        score=points,
        score_parts=parts,
        score_notes=("rows_to_merge counts the keys of equality deletes",),
        files=files,
        worst_partitions=worst,
        deletes=deletes,
        manifests=of_manifests,
        snapshots=history,
        storage=storage,
        notes=settings.notes,
    )


def _manifests_of(loaded: LoadedMetadata, snapshot: Snapshot | None) -> pa.Table:
    if snapshot is None:
        return MANIFEST_SCHEMA.empty_table()
    return read_manifest_list(loaded.places, snapshot)


def _live(loaded: LoadedMetadata, manifests: pa.Table) -> dict[int, pa.Table]:
    """Return the live entries of manifests by spec id.

    Groups of manifests are read in parallel.
    """
    parts: dict[int, list[pa.Table]] = {}
    some = [manifests.slice(start, _TOGETHER) for start in range(0, len(manifests), _TOGETHER)]
    for found in in_parallel(partial(_live_of, loaded), some):
        for spec_id, table in found.items():
            parts.setdefault(spec_id, []).append(table)
    return {spec_id: pa.concat_tables(each).combine_chunks() for spec_id, each in parts.items()}


def _live_of(loaded: LoadedMetadata, manifests: pa.Table) -> dict[int, pa.Table]:
    # Bounds of paths show if a delete file is for a single data file.
    found = read_entries(loaded.places, loaded.metadata, manifests, (FILE_PATH_ID,))
    live = {spec_id: live_entries(table) for spec_id, table in found.items()}
    return {spec_id: table for spec_id, table in live.items() if table.num_rows}


def _manifest_facts(manifests: pa.Table, settings: HealthSettings) -> ManifestFacts:
    lengths = manifests.column("manifest_length")
    of_deletes = pc.sum(pc.equal(manifests.column("content"), _DELETES)).as_py() or 0
    small = pc.sum(pc.less(lengths, settings.manifest_target_size // 2)).as_py() or 0
    return ManifestFacts(
        data_manifests=manifests.num_rows - of_deletes,
        delete_manifests=of_deletes,
        bytes=pc.sum(lengths).as_py() or 0,
        small_manifests=small,
    )


def _history(
    loaded: LoadedMetadata, newest: Snapshot | None, now_millis: int, *, time_travel: bool
) -> HistoryFacts:
    metadata = loaded.metadata
    oldest = min(metadata.snapshots, key=lambda each: each.timestamp_ms, default=None)
    kinds = [each.type for each in metadata.references.values()]
    return HistoryFacts(
        count=len(metadata.snapshots),
        oldest=None if oldest is None else oldest.snapshot_id,
        newest=None if newest is None else newest.snapshot_id,
        oldest_age_seconds=_age(oldest, now_millis),
        newest_age_seconds=_age(newest, now_millis),
        tags=kinds.count("tag"),
        branches=kinds.count("branch"),
        overdue=_overdue(metadata, now_millis),
        metadata_files=_metadata_files(loaded) if time_travel else None,
        logged_metadata_files=len(metadata.metadata_log) + 1,
    )


def _overdue(metadata: TableMetadata, now_millis: int) -> int:
    try:
        return len(overdue_snapshots(metadata, retention_of(metadata.properties, now_millis)))
    except InvalidRequestError:
        return 0  # nothing can expire: an expiry would name the property


def _age(snapshot: Snapshot | None, now_millis: int) -> float | None:
    return None if snapshot is None else (now_millis - snapshot.timestamp_ms) / 1000


def _metadata_files(loaded: LoadedMetadata) -> int:
    places = loaded.places
    listed = places.storage.list(f"{places.root}/{METADATA}")
    return sum(is_metadata_file(info.name) for info in listed)


def _with_time_travel(
    loaded: LoadedMetadata,
    newest: pa.Table,
    live: Mapping[int, pa.Table],
    storage: StorageNumbers,
) -> StorageNumbers:
    files = _files_of(_live(loaded, _older_manifests(loaded, newest)))
    needed = _files_of(live).column("file_path")
    past = files.filter(pc.invert(pc.is_in(files.column("file_path"), needed)))
    return StorageNumbers(
        live_bytes=storage.live_bytes,
        time_travel_files=past.num_rows,
        time_travel_bytes=pc.sum(past.column("size")).as_py() or 0,
    )


def _older_manifests(loaded: LoadedMetadata, newest: pa.Table) -> pa.Table:
    """Return the manifests of all snapshots, each once, except those in ``newest``.

    The manifest lists are read in batches. Repeated manifests are dropped after each batch.
    """
    known, found = newest.column("manifest_path"), newest.slice(0, 0)
    snapshots = loaded.metadata.snapshots
    for start in range(0, len(snapshots), _TOGETHER):
        window = snapshots[start : start + _TOGETHER]
        lists = in_parallel(partial(read_manifest_list, loaded.places), window)
        every = pa.concat_tables([found, *lists])
        older = every.filter(pc.invert(pc.is_in(every.column("manifest_path"), known)))
        paths = older.column("manifest_path").combine_chunks()
        found = older.take(pc.index_in(paths.unique(), paths))
    return found


def _files_of(live: Mapping[int, pa.Table]) -> pa.Table:
    """Return the URI and size of each file once; several deletion vectors may be in one file."""
    names = ["file_path", "file_size_in_bytes"]
    schema = pa.schema([("file_path", pa.string()), ("file_size_in_bytes", pa.int64())])
    every = [table.select(names).cast(schema) for table in live.values()]
    found = pa.concat_tables([schema.empty_table(), *every])
    sizes = found.group_by("file_path").aggregate([("file_size_in_bytes", "max")])
    return sizes.rename_columns(["file_path", "size"])
