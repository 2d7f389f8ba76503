# SPDX-License-Identifier: Apache-2.0
"""Examines the health of a Mixed table, and finds the work for an optimizing and an expiry.

The score of files and deletes is Amoro's. Manifests, snapshots and stored bytes are the sums of
both stores, which are examined as Iceberg tables.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.health import IcebergHealthReport, check_health
from lakeformat.iceberg.health.health_report import HistoryFacts, ManifestFacts
from lakeformat.iceberg.health.reasons import Cures, overdue_share
from lakeformat.iceberg.health.settings import settings_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.mixed.compact.plan import LoadState, MixedCompactPlan, plan_merge
from lakeformat.mixed.expire.expire import (
    MixedExpiryRequest,
    plan_expiry,
    without_changes,
)
from lakeformat.mixed.expire.merged_changes import MergedChanges
from lakeformat.mixed.health.files import LiveFiles
from lakeformat.mixed.optimizing.evaluate import LastRuns, PendingFiles
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.tables.health.numbers import StorageNumbers
from lakeformat.tables.health.score import Pending, Score, score
from lakeformat.tables.health.verdict import Reason, in_order, judge
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["MixedHealthReport", "check_mixed_health", "score_of_partitions"]

_WORST_PARTITIONS = 10
_TOLERATED_FILES = 10
"""If there are more files of old merged changes than this number, the report advises an expiry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedHealthReport(IcebergHealthReport):
    """The health of a Mixed table: the numbers of an Iceberg report, for both stores together.

    Data files are the files of the base store and the inserts that are not merged yet. Deletes of
    the change store count as equality deletes.
    """

    merged_files: int
    """The number of files of the change store that are merged and older than
    ``change.data.ttl.minutes``."""
    merged_bytes: int


def check_mixed_health(
    pair: StorePair, load: LoadState, table: str, *, time_travel: bool
) -> MixedHealthReport:
    """Return the health of the newest state of a table; ``table`` is its URI.

    With ``time_travel`` the manifests of all older snapshots are read, and the metadata files are
    listed.
    """
    now_millis = pair.base.environment.now_millis()
    loaded, state, last = load()
    name = loaded.base.places.catalog_name or table
    settings = OptimizingSettings.of(state.base.metadata.properties)
    live = LiveFiles.of(state, settings)
    plan, obstacles = _planned(loaded, state, last, now_millis)
    merged, expired = _expired(loaded, state, now_millis)
    stores = [
        check_health(
            each, each.metadata.current_snapshot, Cures(name), now_millis, time_travel=time_travel
        )
        for each in (loaded.change, loaded.base)
    ]
    history = _history(stores, expired)
    partitions = () if plan is None else plan.optimizing.partitions
    parts = score_of_partitions([each.decision.pending for each in partitions], settings)
    collected = settings_of(loaded.base.metadata.properties)
    parts = parts.with_history(overdue_share(collected, history))
    is_overdue = parts.history < 0
    reasons = in_order(*obstacles, *_reasons(name, plan, history, merged, is_overdue=is_overdue))
    head = _newest(loaded.change, loaded.base)
    verdict, points = judge(reasons, parts.total, is_empty=head is None)
    due = [] if plan is None else [each.partition for each in plan.due]
    return MixedHealthReport(
        table=table,
        location=loaded.base.places.uri,
        snapshot_id=head,
        verdict=verdict,
        reasons=reasons,
        score=points,
        score_parts=parts,
        score_notes=("rows_to_merge counts the deletes of the change store",),
        files=live.facts(len(due)),
        worst_partitions=live.partition_facts(due)[:_WORST_PARTITIONS],
        deletes=live.deletes(),
        manifests=_manifests(stores),
        snapshots=history,
        storage=_storage(stores),
        notes=tuple(dict.fromkeys(note for each in stores for note in each.notes)),
        merged_files=len(merged.paths),
        merged_bytes=merged.bytes,
    )


def _planned(
    loaded: LoadedPair, state: MixedState, last: LastRuns, now_millis: int
) -> tuple[MixedCompactPlan | None, list[Reason]]:
    """Return the plan of the next optimizing; if it cannot be planned, None and the reason."""
    try:
        return plan_merge(lambda: (loaded, state, last), "minor", now_millis), []
    except UnsupportedError as error:
        finding, _, advice = str(error).rpartition(": ")
        return None, [Reason(f"it cannot be optimized: {finding or error}", advice, True)]


def _expired(loaded: LoadedPair, state: MixedState, now_millis: int) -> tuple[MergedChanges, int]:
    """Return the merged changes and the number of snapshots that an expiry would delete now.

    Return no changes and 0 if a table property forbids expiry.
    """
    stores = (loaded.change, loaded.base)
    if not all(settings_of(each.metadata.properties).may_expire for each in stores):
        return MergedChanges(), 0
    expired = list[int]()
    expiry = plan_expiry(
        loaded,
        state,
        MixedExpiryRequest(),
        now_millis,
        newest=lambda: without_changes(state, expired),
    )
    for request, store in ((expiry.change, loaded.change), (expiry.base, loaded.base)):
        expired += request.select(store, now_millis).snapshots
    return expiry.merged, len(expired)


def score_of_partitions(pending: Sequence[PendingFiles], settings: OptimizingSettings) -> Score:
    """Return Amoro's score; ``pending`` has the files that need attention, by partition.

    Two table properties define when a partition gets the worst score:
    ``self-optimizing.minor.trigger.file-count`` by its number of files, and
    ``self-optimizing.major.trigger.duplicate-ratio`` by its share of deletes.
    """

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([getattr(each, name) for each in pending], np.int64)

    return score(
        Pending(
            files=column("files"),
            bytes=column("bytes"),
            rows=column("rows"),
            deletes=column("equality_rows"),
            hidden=column("position_rows"),
            enough_files=np.full(len(pending), float(settings.minor_file_count)),
            enough_bytes=settings.min_target_size,
            many_deletes=float(settings.duplicate_ratio),
        )
    )


def _reasons(
    table: str,
    plan: MixedCompactPlan | None,
    history: HistoryFacts,
    merged: MergedChanges,
    *,
    is_overdue: bool,
) -> Iterator[Reason]:
    name = shlex.quote(table)
    if plan is not None and plan.due:
        first = plan.due[0]
        where = f", for example of partition {first.partition}" if first.partition else ""
        yield Reason(
            f"{plan.optimizing.sentence} is due{where} ({first.decision.reason})",
            f"lake compact {name} --strategy minor",
        )
    if plan is not None and plan.obstacle is not None:
        finding, _, advice = plan.obstacle.partition(": ")
        yield Reason(finding, advice, is_severe=True)
    if is_overdue:
        yield Reason(
            f"{history.overdue:,} of {counted(history.count, 'snapshot')} are beyond their "
            "retention, and keep their files",
            f"lake expire {name}",
        )
    if len(merged.paths) > _TOLERATED_FILES:
        yield Reason(
            f"the change store has {counted(len(merged.paths), 'file')} of "
            f"{size(merged.bytes)} with merged changes older than 'change.data.ttl.minutes'",
            f"lake expire {name}",
        )


def _newest(*stores: LoadedMetadata) -> int | None:
    heads = [each.metadata.current_snapshot for each in stores]
    found = [(each.timestamp_ms, each.snapshot_id) for each in heads if each is not None]
    return max(found)[1] if found else None


def _history(stores: Sequence[IcebergHealthReport], overdue: int) -> HistoryFacts:
    found = [each.snapshots for each in stores]
    ages = [(each.oldest_age_seconds, each.oldest) for each in found if each.count]
    newest = [(each.newest_age_seconds, each.newest) for each in found if each.newest]
    files = [each.metadata_files for each in found]
    return HistoryFacts(
        count=sum(each.count for each in found),
        oldest=max(ages)[1] if ages else None,
        newest=min(newest)[1] if newest else None,
        oldest_age_seconds=max(ages)[0] if ages else None,
        newest_age_seconds=min(newest)[0] if newest else None,
        tags=sum(each.tags for each in found),
        branches=sum(each.branches for each in found),
        overdue=overdue,
        metadata_files=None if None in files else sum(each or 0 for each in files),
        logged_metadata_files=sum(each.logged_metadata_files for each in found),
    )


def _manifests(stores: Sequence[IcebergHealthReport]) -> ManifestFacts:
    found = [each.manifests for each in stores]
    return ManifestFacts(
        data_manifests=sum(each.data_manifests for each in found),
        delete_manifests=sum(each.delete_manifests for each in found),
        bytes=sum(each.bytes for each in found),
        small_manifests=sum(each.small_manifests for each in found),
    )


def _storage(stores: Sequence[IcebergHealthReport]) -> StorageNumbers:
    found = [each.storage for each in stores]
    past = [each for each in found if each.time_travel_files is not None]
    return StorageNumbers(
        live_bytes=sum(each.live_bytes for each in found),
        time_travel_files=sum(each.time_travel_files or 0 for each in past) if past else None,
        time_travel_bytes=sum(each.time_travel_bytes or 0 for each in past) if past else None,
    )
