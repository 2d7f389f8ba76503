# SPDX-License-Identifier: Apache-2.0
"""Lets a stream write each batch exactly once, and records runs; both records are in ``_lake``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lakeformat.iceberg.branch_history import history_of
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

    ``find_commit`` returns the earlier commit of an identity; None if there is none.
    ``other_stores`` are other stores of a Mixed table, which can have the commit.
    """
    notes = own_records(handle, "stream", *other_stores)
    consumers = own_consumers(handle, loaded=notes.loaded)
    return StreamTable(
        handle.uri,
        notes.storage,
        notes.directory,
        handle.environment,
        find_commit,
        partial(_keep, handle),
        consumers.delete_new,
        partial(_old_directory, notes),
        consumers.delete_old,
    )


def run_records(handle: TableHandle, *other_stores: TableHandle) -> RunRecords:
    """Return the records of runs; ``other_stores`` are other stores of a Mixed table, whose
    snapshots a record can name.
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


def _keep(handle: TableHandle, name: str) -> str | None:
    history = history_of(handle.load().metadata, handle.branch, handle.uri)
    head = history.snapshots[-1] if history.snapshots else None
    # Version 1 has no positions, so no snapshot can be kept. A repeated batch whose commit may have
    # expired is then refused.
    if head is None or head.snapshot.sequence_number:
        TableConsumers(handle).move(name, history.head)
    return None if head is None else head.identity
