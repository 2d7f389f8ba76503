# SPDX-License-Identifier: Apache-2.0
"""Changes rows of a primary-key table by writing another row of the same key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.aggregate_rules import canonical_name
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.row_changes.own_rows import OwnRowsWriter
from lakeformat.paimon.schema_changes.sequence_groups import sequence_groups
from lakeformat.paimon.write.as_of import WrittenAsOf
from lakeformat.rows.assignments import Assignments
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.rows.conditions.predicate import And, IsNull
from lakeformat.rows.row_kinds import DELETE, UPDATE_AFTER, UPDATE_BEFORE
from lakeformat.types.count_text import counted

__all__ = [
    "find_keyed_rows",
    "require_deletable",
    "require_sequences",
    "require_updatable",
    "unchanged_rows",
    "write_keyed_rows",
]

_OVERWRITE = "overwrite the table, or the partitions of these rows, with the remaining rows"


def require_deletable(handle: TableHandle) -> None:
    """Raise InvalidRequestError if a row of kind ``-D`` does not delete its key in this table."""
    options, remedy = handle.options, None
    if options.ignore_delete:
        remedy = f"the table ignores deletes ('ignore-delete' = 'true'): {_OVERWRITE}"
    elif options.merge_engine == "first-row":
        remedy = f"merge engine 'first-row' cannot delete rows: {_OVERWRITE}"
    elif options.merge_engine == "aggregation":
        if not options.remove_record_on_delete_of_aggregation:
            remedy = _allowed_by("aggregation.remove-record-on-delete")
    elif options.merge_engine == "partial-update" and not (
        options.remove_record_on_delete_of_partial_update or options.remove_record_on_sequence_group
    ):
        remedy = _allowed_by("partial-update.remove-record-on-delete")
    _refuse(handle, "DELETE", remedy or _kinds_in_a_column(handle))


def require_updatable(handle: TableHandle, assignments: Assignments) -> None:
    """Raise InvalidRequestError if an UPDATE of these columns would not set the new values."""
    options, schema = handle.options, handle.schema
    reason = None
    if options.merge_engine == "first-row":
        reason = (
            "merge engine 'first-row' keeps the first row of each key: overwrite the table, or the "
            "partitions of these rows, with the new values"
        )
    elif options.merge_engine != "deduplicate":
        reason = (
            f"merge engine {options.merge_engine!r} merges new values with earlier ones: write "
            "rows whose merge gives the values you want"
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
            f"{named[0]!r} is in 'sequence.field' and decides which row of a key is newer: write "
            "the rows with their new values instead"
        )
    _refuse(handle, "UPDATE", reason or _kinds_in_a_column(handle))


def find_keyed_rows(handle: TableHandle, snapshot: Snapshot, where: PredicateFilter | None) -> Scan:
    """Return a scan of the merged rows that meet the condition.

    The merge includes rows that other reads see only after a compaction: rows of level 0, and
    postponed rows. So the condition is checked on the newest state of each key.
    """
    options = {
        **handle.schema.options,
        "deletion-vectors.merge-on-read": "true",
        "postpone.merge-on-read": "true",
    }
    merged = replace(handle, schema=replace(handle.schema, options=options))
    return Scan(merged, snapshot, None, where)


def require_sequences(handle: TableHandle, found: Scan) -> None:
    """Raise UnsupportedError if a delete would have no effect on some of the found rows.

    With ``partial-update.remove-record-on-sequence-group``, a delete without a sequence has no
    effect. A delete takes its sequence from the found row, so that row must have one.
    """
    removing = set(handle.options.remove_record_on_sequence_group)
    if not removing or handle.options.merge_engine != "partial-update":
        return
    groups = [group.sequence for group in sequence_groups(handle.schema)]
    names = [name for group in groups if not removing.isdisjoint(group) for name in group]
    if rows := found.meeting(And(tuple(IsNull(name) for name in names))).count():
        columns = " or ".join(map(repr, names))
        raise UnsupportedError(
            f"DELETE of rows of {handle.uri} is not possible: the condition matches "
            f"{counted(rows, 'row')} without a value in {columns}, and a delete has an effect only "
            "with such a value ('partial-update.remove-record-on-sequence-group'). Nothing was "
            "changed. Write these rows with a value and then delete them, or limit the condition "
            f"to rows with a value, or {_OVERWRITE}"
        )


def unchanged_rows(scan: Scan, as_of: WrittenAsOf | None) -> Iterator[pa.RecordBatch]:
    """Stream the rows of the scan whose key no other commit has changed since ``as_of``.

    With ``as_of=None``, stream all rows.
    """
    for batch in scan.to_batches():
        if as_of is not None:
            batch = batch.filter(pa.array(~as_of.is_changed(batch)))
        if batch.num_rows:
            yield batch


def write_keyed_rows(
    handle: TableHandle, scan: Scan, assignments: Assignments | None, as_of: WrittenAsOf | None
) -> tuple[int, list[CommitMessage]]:
    """Update or delete the rows of ``scan``; return their number, and the messages to commit.

    ``assignments=None`` deletes the rows. With ``as_of``, keys that other commits have changed
    since then are skipped. If this function raises, no new file remains.
    """
    with OwnRowsWriter(handle, None if as_of is None else as_of.filtered()) as writer:
        rows = 0
        for batch in unchanged_rows(scan, as_of):
            rows += batch.num_rows
            for changed, kind in _written(handle, batch, assignments):
                writer.write(changed, pa.array(np.full(changed.num_rows, kind, np.int8)))
        return rows, writer.prepare()


def _written(
    handle: TableHandle, batch: pa.RecordBatch, assignments: Assignments | None
) -> Iterator[tuple[pa.RecordBatch, int]]:
    if assignments is None:
        yield _deletion(handle, batch), DELETE
        return
    if handle.options.changelog_producer == "input":  # the changelog has the row before an update
        yield batch, UPDATE_BEFORE
    yield assignments(batch), UPDATE_AFTER


def _deletion(handle: TableHandle, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of ``batch`` with the values that a delete writes.

    With an option ``….remove-record-on-delete``, most values become NULL. The reason: a new row of
    the key may be written before a compaction drops the ``-D`` row, and would be merged with the
    values of the ``-D`` row. Keys, sequences, NOT NULL columns, and columns whose aggregate
    function keeps the first value are not changed.

    With the changelog producer ``input``, no value is changed, because the changelog needs the
    deleted row.
    """
    schema, options = handle.schema, handle.options
    removes = (
        options.remove_record_on_delete_of_aggregation,
        options.remove_record_on_delete_of_partial_update,
    )
    if not any(removes) or options.changelog_producer == "input":
        return batch
    kept = {*schema.primary_keys, *schema.partition_keys, *options.sequence_field}
    kept |= {field.name for field in schema.fields if not field.type.nullable}
    kept |= {
        name
        for name in schema.column_names
        if (function := options.aggregate_function_of(name))
        and canonical_name(function, name) in ("first_value", "first_non_null_value")
    }
    columns = [
        column if name in kept else pa.nulls(batch.num_rows, column.type)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _kinds_in_a_column(handle: TableHandle) -> str | None:
    if not handle.options.row_kind_field:
        return None
    return (
        f"column {handle.options.row_kind_field!r} ('rowkind.field') holds the kind of each row: "
        "write rows of the kind you want"
    )


def _allowed_by(option: str) -> str:
    return (
        f"it needs the option {option!r} = 'true', which cannot be set once a table has a "
        f"snapshot: {_OVERWRITE}, or create a new table with the option and copy the rows"
    )


def _refuse(handle: TableHandle, operation: str, reason: str | None) -> None:
    if reason:
        raise InvalidRequestError(
            f"{operation} of rows of {handle.uri} is not possible: {reason}. Nothing was changed"
        )
