"""Rows of a primary-key table: a deletion or a new value is another row of the same key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.merge.row_kinds import DELETE, UPDATE_AFTER, UPDATE_BEFORE
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.row_changes.assignments import Assignments
from lakeformat.paimon.row_changes.own_rows import OwnRowsWriter
from lakeformat.rows.conditions.filter import PredicateFilter

__all__ = ["find_keyed_rows", "require_deletable", "require_updatable", "write_keyed_rows"]


def require_deletable(handle: TableHandle) -> None:
    """Refuse a table in which a row of kind -D does not delete."""
    options, remedy = handle.options, None
    if options.ignore_delete:
        remedy = "it ignores deleted rows ('ignore-delete' = 'true')"
    elif options.merge_engine == "first-row":
        remedy = "merge engine 'first-row' never deletes a row"
    elif options.merge_engine == "aggregation":
        if not options.remove_record_on_delete_of_aggregation:
            remedy = "set 'aggregation.remove-record-on-delete' = 'true' to have rows deleted"
    elif options.merge_engine == "partial-update" and not (
        options.remove_record_on_delete_of_partial_update or options.remove_record_on_sequence_group
    ):
        remedy = "set 'partial-update.remove-record-on-delete' = 'true' to have rows deleted"
    _refuse(handle, "DELETE", remedy or _kinds_in_a_column(handle))


def require_updatable(handle: TableHandle, assignments: Assignments) -> None:
    """Refuse values that a merge would change."""
    options, schema = handle.options, handle.schema
    reason = None
    if options.merge_engine != "deduplicate":
        reason = (
            f"merge engine {options.merge_engine!r} merges new values with earlier ones: write "
            "rows that merge into the values you want"
        )
    named = [name for name in schema.primary_keys if name in assignments.values]
    if named:
        reason = (
            f"{named[0]!r} is part of the primary key, which cannot change: delete the row and "
            "write another"
        )
    named = [name for name in options.sequence_field if name in assignments.values]
    if named:
        reason = (
            f"{named[0]!r} decides which row of a key is newer ('sequence.field'): write the rows "
            "with their new values instead"
        )
    _refuse(handle, "UPDATE", reason or _kinds_in_a_column(handle))


def find_keyed_rows(handle: TableHandle, snapshot: Snapshot, where: PredicateFilter | None) -> Scan:
    """Return a scan of the merged rows of all commits."""
    # Rows that wait for a compaction are changed too, or their older versions would win.
    options = {**handle.schema.options, "deletion-vectors.merge-on-read": "true"}
    merged = replace(handle, schema=replace(handle.schema, options=options))
    return Scan(
        merged if handle.options.deletion_vectors_enabled else handle, snapshot, None, where
    )


def write_keyed_rows(
    handle: TableHandle, scan: Scan, assignments: Assignments | None
) -> tuple[int, list[CommitMessage]]:
    """Return the number of rows, and the messages to commit; when this raises, no file is left."""
    with OwnRowsWriter(handle) as writer:
        rows = 0
        for batch in scan.to_batches():
            rows += batch.num_rows
            for changed, kind in _written(handle, batch, assignments):
                writer.write(changed, pa.array(np.full(changed.num_rows, kind, np.int8)))
        return rows, writer.prepare()


def _written(
    handle: TableHandle, batch: pa.RecordBatch, assignments: Assignments | None
) -> Iterator[tuple[pa.RecordBatch, int]]:
    if assignments is None:
        yield batch, DELETE
        return
    if handle.options.changelog_producer == "input":  # whose readers are told what was
        yield batch, UPDATE_BEFORE
    yield assignments(batch), UPDATE_AFTER


def _kinds_in_a_column(handle: TableHandle) -> str | None:
    if not handle.options.row_kind_field:
        return None
    return (
        f"its column {handle.options.row_kind_field!r} holds what each row does "
        "('rowkind.field'): write rows with the kind you want"
    )


def _refuse(handle: TableHandle, operation: str, reason: str | None) -> None:
    if reason:
        raise InvalidRequestError(
            f"{operation} of rows of {handle.uri} is not possible: {reason}. Nothing was changed"
        )
