# SPDX-License-Identifier: Apache-2.0
"""UPSERT: given rows replace the stored rows with the same keys, or are added, in one commit.

If rows have kinds, such as ``-D``, only the last change of each key is used; this change may also
delete the stored rows of the key. Stored rows are deleted as by ``delete``, but in the mode of
``write.merge.mode``. If another commit may have added one of the keys in the meantime, that is a
conflict, and the stored rows are searched again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.environment import Environment
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.read.file_rows import POSITION, ROW_ID, lineage_of
from lakeformat.iceberg.row_changes.changed_files import UnitWork
from lakeformat.iceberg.row_changes.given_changes import GivenChanges, given_changes
from lakeformat.iceberg.row_changes.given_keys import GivenKeys, given_keys, key_fields
from lakeformat.iceberg.row_changes.matched_rows import (
    FileToChange,
    MatchedFile,
    MatchPlan,
    plan_matches,
)
from lakeformat.iceberg.row_changes.method import method_of
from lakeformat.iceberg.row_changes.redo import require_newest
from lakeformat.iceberg.row_changes.run import ChangeRequest, PreparedChange, run_change
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.iceberg.write.publish import PublishedChange
from lakeformat.iceberg.write.report import UpsertReport, write_report
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.rows.groups import Positions
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.row_change_report import RowChangeReport, RowOperation
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.count_text import counted

__all__ = ["MERGE", "upsert", "upsert_report"]

MERGE = "merge"
"""The operation whose properties apply: ``write.merge.*``, as in Spark."""
_NO_ROW = -1


def upsert(
    handle: TableHandle,
    data: Any,
    by: Sequence[str] | None,
    *,
    kinds: Any = None,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> UpsertReport:
    """Add the given rows in place of the stored rows with the same keys.

    With ``kinds``, if the last change of a key is a delete, its stored rows are deleted and no row
    is added. A repeated call with the same ``commit`` publishes nothing again. Ten conflicts in a
    row raise ``CommitConflictError``. Raise ``InvalidRequestError`` for rows that do not fit the
    table, for null keys, and, without ``kinds``, for repeated keys. With ``commit.replaces`` raise
    it also if a later commit may have changed rows with the same keys.
    """
    request = ChangeRequest(
        operation=RowOperation.UPSERT, commit=commit, properties=checked_properties(properties)
    )
    loaded = handle.load()
    method_of(loaded.metadata, MERGE)
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        return UpsertReport(**asdict(write_report(handle.uri, earlier)))
    schema = loaded.metadata.schema
    fields = key_fields(schema, by)
    given, names = given_changes(schema, data, fields, kinds), [each.name for each in fields]
    report = run_change(handle, request, lambda: _prepared(handle, given, names, commit))
    rows = sum(each.batch.num_rows for each in given.stored)
    return upsert_report(
        handle, report, rows, "replaced" if kinds is None else "replaced or deleted"
    )


def upsert_report(
    handle: TableHandle, report: RowChangeReport, rows: int, done: str
) -> UpsertReport:
    """Return the report of an upsert of ``rows`` given rows.

    ``report`` describes the change of stored rows; ``done`` is its verb, such as ``replaced``.
    """
    snapshot_id = report.snapshot_id
    snapshot = None if snapshot_id is None else handle.load().metadata.snapshot(snapshot_id)
    published = PublishedChange(snapshot, report.attempts, report.replayed)
    found = UpsertReport(**asdict(write_report(handle.uri, published)))
    if snapshot is None or report.replayed:
        return found
    replaced = report.rows or 0
    reason = f"{counted(replaced, 'stored row')} {done}, {found.reason}"
    return replace(found, rows=rows, replaced_rows=replaced, reason=reason)


def _prepared(
    handle: TableHandle, given: GivenChanges, names: Sequence[str], commit: CommitId | None
) -> PreparedChange:
    """Plan the upsert against the newest snapshot, with the columns that the table has now."""
    loaded = handle.load()
    schema = loaded.metadata.schema
    fields = key_fields(schema, names)
    rows = given.rows(schema)
    keys = given_keys(given.keys(schema, fields, rows), fields)
    plan = plan_matches(loaded, handle.branch, keys.condition, with_all_deletes=True)
    require_newest(handle, loaded, commit, plan.condition)
    files = (*plan.whole, *plan.open)
    plan.scan.expect([each.split for each in files])
    upserted = _Upsert(plan, keys, rows, np.full(len(keys), _NO_ROW, np.int64))
    work = UnitWork(
        plan=plan,
        method=method_of(loaded.metadata, MERGE),
        find=upserted.find,
        update=None,
        environment=handle.environment,
        is_dry_run=False,
    )
    return PreparedChange(
        work=work,
        searched=files,
        unseen=plan.condition,
        add=lambda: upserted.write(handle.environment),
        # Otherwise a repeated commit would delete rows that got these keys later.
        is_recorded=commit is not None and len(keys) > len(rows),
    )


@dataclass(frozen=True, slots=True)
class _Upsert:
    """One attempt of an upsert: the given rows, and the ids of the stored rows they replace."""

    plan: MatchPlan
    keys: GivenKeys
    rows: pa.Table
    row_ids: Positions
    """In version 3 the row id of the stored row of each key; -1 until it is found."""

    def find(self, file: FileToChange) -> MatchedFile:
        return MatchedFile(
            file,
            DeletionVector.of_parts(self._positions(file)),
            self.plan.scan.deleted_positions(file.split),
        )

    def write(self, environment: Environment) -> pa.Table | None:
        """Write the given rows, and return the manifest entries of their files; None without rows.

        In version 3 a row keeps the row id of the stored row that it replaces; the commit gives ids
        to the other rows.
        """
        if not len(self.rows):
            return None
        rows, lineage = self.rows, self._lineage
        row_ids = self.row_ids[: len(rows)]
        replaces = row_ids != _NO_ROW
        if not replaces.any():  # the commit gives row ids to new rows
            lineage = ()
        for each in lineage:
            ids = pc.if_else(array_of(replaces), array_of(row_ids), None)
            column = ids if each == ROW_ID else pa.nulls(len(rows), pa.int64())
            rows = rows.append_column(each.name, column)
        writer = TableWriter(self.plan.loaded, environment, lineage)
        try:
            for batch in rows.to_batches():
                writer.write(batch)
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def _positions(self, file: FileToChange) -> Iterator[Positions]:
        ids = (ROW_ID,) if self._lineage else ()
        wanted = (*self.keys.fields, POSITION, *ids)
        for batch in self.plan.scan.read_fields(file.split, wanted):
            numbers = self.keys.rows_of(batch)
            found = np.flatnonzero(numbers != _NO_ROW)
            if ids:
                stored = batch.column(len(wanted) - 1).take(array_of(found))
                self.row_ids[numbers[found]] = pc.fill_null(stored, _NO_ROW).to_numpy()
            yield batch.column(len(self.keys.fields)).to_numpy()[found]

    @property
    def _lineage(self) -> tuple[Field, ...]:
        return lineage_of(self.plan.loaded.metadata)
