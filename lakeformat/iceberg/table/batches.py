# SPDX-License-Identifier: Apache-2.0
"""The records of a stream's batches and of the runs of jobs, in the directory ``_lake``.

With the records of its batches, a stream writes each batch exactly once. The record of a run
describes its last success.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lakeformat.iceberg.branch_history import BranchHistory, history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.own_files import OwnRecords, own_records
from lakeformat.iceberg.table.consumers import TableConsumers
from lakeformat.iceberg.table.own_consumers import own_consumers
from lakeformat.tables.batch_log import StreamTable
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.run_record import RunRecords

__all__ = ["run_records", "stream_table"]


def stream_table(
    handle: TableHandle,
    find_commit: Callable[[CommitId], object | None],
    *other_stores: TableHandle,
) -> StreamTable:
    """Return the storage, the directory and the functions that the log of a stream's batches needs.

    ``find_commit`` returns the earlier commit with a ``CommitId``; None if there is none.
    ``other_stores`` are the other stores of a Mixed table; a record can also name their snapshots.
    """
    notes = own_records(handle, "stream", *other_stores)
    consumers = own_consumers(handle, loaded=notes.loaded)
    return StreamTable(
        handle.uri,
        notes.storage,
        notes.directory,
        handle.environment,
        find_commit,
        partial(_keep, handle, other_stores),
        consumers.delete_new,
        partial(_old_directory, notes),
        consumers.delete_old,
    )


def run_records(handle: TableHandle, *other_stores: TableHandle) -> RunRecords:
    """Return the records of the runs of jobs.

    ``other_stores`` are the other stores of a Mixed table; a record can also name their snapshots.
    """
    runs = own_records(handle, "run", *other_stores)
    old = runs.old_directory if runs.has_old_place else None
    return RunRecords(
        runs.storage,
        runs.directory,
        old,
        runs.may_name,
        lambda: own_records(handle, "run", *other_stores).identifiers(),
    )


def _old_directory(notes: OwnRecords, commit: CommitId) -> str | None:
    if not notes.has_old_place:
        return None
    # Without expired snapshots, the snapshots show which batches are published. But a rollback may
    # have removed the batch from the branch.
    identifiers = notes.identifiers()
    is_needed = identifiers is None or identifiers.get(commit.user, -1) >= commit.identifier
    return notes.old_directory if is_needed else None


def _keep(handle: TableHandle, others: tuple[TableHandle, ...], name: str) -> str | None:
    history = _history(handle)
    # Version 1 has no positions, so no snapshot can be kept. A repeated batch whose commit may have
    # expired is then refused.
    if not history.snapshots or history.snapshots[-1].snapshot.sequence_number:
        TableConsumers(handle).move(name, history.head)
    # A search for the batch looks into all stores, so it needs the head of each.
    heads = [_head(each) for each in (history, *map(_history, others))]
    return "-".join(heads) if any(heads) else None


def _history(handle: TableHandle) -> BranchHistory:
    return history_of(handle.load().metadata, handle.branch, handle.uri)


def _head(history: BranchHistory) -> str:
    return history.snapshots[-1].identity if history.snapshots else ""
