# SPDX-License-Identifier: Apache-2.0
"""Sort compaction: writes the rows of an append table in an order that lets queries skip files."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.executor import Executor
from lakeformat.paimon.compact.compact import OnUnit, run_plans
from lakeformat.paimon.compact.compact_report import CompactReport
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.compact.partition_choice import (
    WHOLE_TABLE,
    Chosen,
    ChosenFiles,
    Idle,
    Places,
)
from lakeformat.paimon.compact.sorting.order import RowOrder, row_order
from lakeformat.paimon.compact.steps import Rewrite
from lakeformat.paimon.compact.supported import require_supported, require_whole_rows
from lakeformat.paimon.compact.unit import CompactPlan, CompactUnit
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partition import partition_name
from lakeformat.paimon.read.deletions import deleted_rows_of, find_vectors
from lakeformat.paimon.read.plan import naming_partition
from lakeformat.tables.commit_id import CommitId
from lakeformat.types.count_text import counted

__all__ = ["asked_order", "plan_sort", "sort_compact"]


def sort_compact(
    handle: TableHandle,
    order_by: Sequence[str],
    strategy: str = "order",
    *,
    chosen: Chosen = WHOLE_TABLE,
    commit: CommitId | None = None,
    executor: str | Executor | None = None,
    on_progress: OnUnit | None = None,
) -> CompactReport:
    """Write all rows of the chosen partitions again, sorted by columns or along a space-filling
    curve.

    ``strategy`` is ``order`` (one column after the other), or ``zorder`` or ``hilbert`` (equal
    weight for all columns). Each bucket is sorted by itself. Files that a writer adds meanwhile are
    not changed. If another commit compacts or deletes files of a bucket meanwhile, that bucket is
    sorted again.

    Raise UnsupportedError for a table whose rows cannot get another order, and InvalidRequestError
    for an unknown column or strategy.
    """

    def plan(newest: TableHandle, places: Places | None) -> CompactPlan:
        return plan_sort(newest, order_by, strategy, chosen=chosen.at(places))

    return run_plans(
        handle,
        strategy,
        plan,
        commit=commit,
        executor=executor,
        on_progress=on_progress,
        ends_at_once=lambda _: True,
    )


def asked_order(
    order_by: Sequence[str] | None, order_strategy: str | None, strategy: str, idle: Idle | None
) -> tuple[Sequence[str], str] | None:
    """Return the columns to sort by and the order strategy; None without ``order_by``.

    Raise InvalidRequestError for arguments that contradict each other.
    """
    if order_by is None:
        if order_strategy is not None:
            raise InvalidRequestError(
                f"order_strategy={order_strategy!r} sorts by columns: name them in order_by"
            )
        return None
    if strategy != "full" or idle is not None:
        raise InvalidRequestError(
            f"order_by sorts all rows of the chosen partitions: leave out strategy={strategy!r}"
            if strategy != "full"
            else "order_by sorts all rows of the chosen partitions: leave out idle"
        )
    return order_by, order_strategy or "order"


def plan_sort(
    handle: TableHandle,
    order_by: Sequence[str],
    strategy: str = "order",
    *,
    chosen: Chosen = WHOLE_TABLE,
) -> CompactPlan:
    """Return the plan to sort the newest snapshot, a unit for each bucket; nothing is changed.

    The errors are those of ``sort_compact``.
    """
    snapshot = latest_snapshot(handle.storage, handle.layout)
    # The schema is read after the snapshot. Otherwise columns of its files could be lost.
    handle = newest_schema(handle)
    _require_sortable(handle)
    order = row_order(handle.schema, order_by, strategy)
    files = ChosenFiles(handle, chosen)
    if snapshot is None:
        return CompactPlan(
            table=handle.uri, strategy=strategy, snapshot_id=None, schema_id=handle.schema.id
        )
    vectors = find_vectors(handle, snapshot)
    with naming_partition(handle, snapshot):
        units = [
            _unit(handle, snapshot, entries, order, vectors.get(place, ()))
            for place, entries in files.by_bucket(snapshot).items()
        ]
    return CompactPlan(
        table=handle.uri,
        strategy=strategy,
        snapshot_id=snapshot.id,
        schema_id=handle.schema.id,
        units=tuple(sorted(units, key=lambda unit: -unit.bytes)),
    )


def _unit(
    handle: TableHandle,
    snapshot: Snapshot,
    files: list[ManifestEntry],
    order: RowOrder,
    vectors: tuple[IndexManifestEntry, ...],
) -> CompactUnit:
    require_whole_rows(handle, files)
    deleted = deleted_rows_of(handle, snapshot, vectors)
    marked = {found.data_file_name for entry in vectors for found in entry.ranges or ()}
    size = sum(entry.file.file_size for entry in files)
    return CompactUnit(
        snapshot=snapshot,
        schema_id=handle.schema.id,
        path=partition_name(handle.schema, files[0].partition),
        files=tuple(files),
        steps=(Rewrite(((tuple(entry.file for entry in files),),)),),
        order=order,
        vectors=vectors,
        deleted_rows=sum(deleted.count(e) for e in files if e.file.file_name in marked),
        expected_files=max(-(-size // handle.options.target_file_size_bytes), 1),
        reason=f"sorted by {', '.join(order.columns)} ({order.strategy})",
    )


def _require_sortable(handle: TableHandle) -> None:
    reason = None
    if handle.schema.primary_keys:
        reason = "has a primary key, which sorts its rows already; compact it without order_by"
    elif not is_unaware(handle) and handle.options.bucket_append_ordered:
        reason = (
            f"has {counted(int(handle.options.bucket), 'bucket')} whose rows keep the order they "
            "were written in; set 'bucket-append-ordered' to 'false' to allow another order"
        )
    if reason is not None:
        raise UnsupportedError(f"{handle.uri} {reason}. Nothing was changed")
    require_supported(handle, "full")
