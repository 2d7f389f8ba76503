# SPDX-License-Identifier: Apache-2.0
"""Expires old snapshots of both stores, and removes changes that the base store has merged.

Each store is expired as an Iceberg table, except for snapshots that readers, an open batch or other
programs still need. Then merged changes are removed from the newest snapshot of the change store.
Their files are deleted later, when the older snapshots expire. Each step is a commit of its own, so
a repeated call completes an interrupted one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import timedelta

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.iceberg.expire.select import Unread, require_gc
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.mixed.batch.open_batches import OpenBatch, end_batch_advice, oldest_open_batch
from lakeformat.mixed.expire.expire_report import MixedExpireReport
from lakeformat.mixed.expire.merged_changes import (
    MergedChanges,
    find_merged_changes,
    remove_merged_changes,
)
from lakeformat.mixed.expire.needed_snapshots import NeededSnapshots
from lakeformat.mixed.expire.settings import ExpirySettings
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.tables.deleter import OnRemoval
from lakeformat.tables.past_time import PastTime

__all__ = [
    "ExpiryPlan",
    "MixedExpiryRequest",
    "expire_mixed",
    "plan_expiry",
    "without_changes",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedExpiryRequest:
    """The arguments of an expiry; for an argument that is None, a table property decides."""

    older_than: PastTime | None = None
    retain_min: int | None = None
    snapshots: Collection[int] = ()
    delete_files: bool = True
    unread: Unread = lambda _: ()
    """Returns the ids of the snapshots of both stores that a consumer has not read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPlan:
    """The parts of an expiry: the requests for both stores, and merged changes."""

    merged: MergedChanges
    open_batch: OpenBatch | None
    """The oldest batch that has begun but not committed; None if there is none."""
    change: ExpiryRequest
    base: ExpiryRequest


def expire_mixed(
    pair: StorePair,
    load: Callable[[], tuple[LoadedPair, MixedState]],
    request: MixedExpiryRequest,
    *,
    dry_run: bool,
    on_progress: OnRemoval | None = None,
) -> MixedExpireReport:
    """Expire snapshots of both stores, and remove merged changes that are old enough.

    ``load`` returns the newest metadata of both stores, and the state of the table. Raise
    ``UnsupportedError`` if the property ``gc.enabled`` of a store is false.
    """
    loaded, state = load()
    for each in (loaded.base, loaded.change):
        require_gc(each.metadata)
    if not dry_run:
        pair.base.pointer.require_writable()
    now_millis = pair.base.environment.now_millis()
    planned: list[int] = []

    def newest() -> MixedState:
        return without_changes(state, planned) if dry_run else load()[1]

    plan = plan_expiry(loaded, state, request, now_millis, newest=newest)

    def expired(handle: TableHandle, store: ExpiryRequest) -> IcebergExpireReport:
        return expire_snapshots(handle, store, dry_run=dry_run, on_progress=on_progress)

    change_handle = replace(pair.base, pointer=pair.change)
    change = expired(change_handle, plan.change)
    planned += change.snapshots
    base = expired(pair.base, plan.base)
    if not dry_run:
        remove_merged_changes(change_handle, plan.merged)
    report = _report(loaded.base.places, plan, change, base)
    _log.info("expiry of %s: %s", pair.base.uri, report.reason)
    return report


def plan_expiry(
    loaded: LoadedPair,
    state: MixedState,
    request: MixedExpiryRequest,
    now_millis: int,
    *,
    newest: Callable[[], MixedState] | None = None,
) -> ExpiryPlan:
    """Plan an expiry of the snapshots of both stores from ``state``; only metadata is read.

    When a store is expired later, ``newest`` is called for the state of that moment. Without it,
    ``state`` is used.
    """
    settings = ExpirySettings.of(loaded.base.metadata.properties)
    needed = NeededSnapshots(settings, now_millis, newest or (lambda: state))
    batch = oldest_open_batch(state, now_millis)
    of_change = _of_store(request, settings.change_age, settings.least)
    return ExpiryPlan(
        merged=find_merged_changes(loaded, state, batch, settings.change_age, now_millis),
        open_batch=batch,
        change=replace(of_change, unread=request.unread, needed=needed.of_change),
        base=replace(
            _of_store(request, settings.base_age, settings.least),
            unread=request.unread,
            needed=needed.of_base,
        ),
    )


def without_changes(state: MixedState, expired: Collection[int]) -> MixedState:
    """Return ``state`` as it is after the snapshots ``expired`` of the change store have expired.

    A plan needs this state, because the base store is expired after the change store, and then
    needs fewer snapshots.
    """
    metadata = state.change.metadata
    kept = tuple(each for each in metadata.snapshots if each.snapshot_id not in expired)
    return replace(state, change=replace(state.change, metadata=replace(metadata, snapshots=kept)))


def _of_store(request: MixedExpiryRequest, age_millis: int, least: int) -> ExpiryRequest:
    older_than = request.older_than
    return ExpiryRequest(
        timedelta(milliseconds=age_millis) if older_than is None else older_than,
        least if request.retain_min is None else request.retain_min,
        request.snapshots,
        delete_files=request.delete_files,
    )


def _report(
    places: FilePlaces,
    plan: ExpiryPlan,
    change: IcebergExpireReport,
    base: IcebergExpireReport,
) -> MixedExpireReport:
    return MixedExpireReport(
        table=places.uri,
        dry_run=base.dry_run,
        snapshots=(*change.snapshots, *base.snapshots),
        references=(*change.references, *base.references),
        deleted=change.deleted.plus(base.deleted),
        outside=change.outside + base.outside,
        held=change.held + base.held,
        needed=change.needed + base.needed,
        removals=(*change.removals, *base.removals),
        change=change,
        base=base,
        merged_files=len(plan.merged.paths),
        merged_rows=plan.merged.rows,
        merged_bytes=plan.merged.bytes,
        open_batch=None if plan.open_batch is None else str(plan.open_batch),
        to_end_batch=None if plan.open_batch is None else end_batch_advice(places),
    )
