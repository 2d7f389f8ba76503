# SPDX-License-Identifier: Apache-2.0
"""Runs a change of rows: searches files, writes new files, and publishes all in one commit.

After a conflict everything is planned again, and the files of the earlier attempt are deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.executor import Executor
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.row_changes.changed_files import (
    ChangedUnit,
    ChangeUnit,
    UnitWork,
    units_of,
)
from lakeformat.iceberg.row_changes.matched_rows import FileToChange
from lakeformat.iceberg.row_changes.new_deletes import NewDeletes, new_deletes
from lakeformat.iceberg.row_changes.row_delta import RowDelta
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import (
    Base,
    FileChange,
    Produce,
    PublishedChange,
    publish_change,
)
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.compact_progress import CompactProgress, OnUnit
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.row_change_report import RowChangeReport, RowOperation
from lakeformat.types.count_text import counted

__all__ = ["ChangeRequest", "PreparedChange", "change_reason", "replayed_report", "run_change"]

_log = logging.getLogger(__name__)
_TARGET, _TARGET_BYTES = "write.target-file-size-bytes", 512 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """The arguments of ``delete``, ``update`` or ``upsert``, except the rows and the condition.

    Raise ``InvalidRequestError`` if ``on_progress`` is not a function.
    """

    operation: RowOperation
    commit: CommitId | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    on_progress: OnUnit | None = None
    executor: str | Executor = "serial"

    def __post_init__(self) -> None:
        if self.on_progress is not None and not callable(self.on_progress):
            raise InvalidRequestError(
                f"on_progress must be a function of one argument, got {self.on_progress!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedChange:
    """The plan for changing rows of one snapshot; planning reads no stored row."""

    work: UnitWork
    searched: Sequence[FileToChange]
    """The files that may have rows to change."""
    whole: Sequence[FileToChange] = ()
    """The files that are removed without being read."""
    unseen: PredicateFilter | None = None
    """If another commit has added rows that may meet this condition, the change conflicts. None
    means that added rows are no conflict.
    """
    add: Callable[[], pa.Table | None] = lambda: None
    """Writes more rows after all rows to change are found.

    Returns the manifest entries of their files; None if there are no such rows.
    """
    given: pa.Table | None = None
    """The manifest entries of files that the caller has written.

    The commit also publishes these files; after an error they are kept.
    """
    is_recorded: bool = False
    """True if a snapshot is published even if no row changes, so that a repeated commit
    finds it.
    """
    once: Callable[[Produce], Produce] = lambda produce: produce
    """Wraps the change, so that it fails if a file in ``given`` is already published.

    The default adds no check.
    """


def run_change(
    handle: TableHandle, request: ChangeRequest, prepare: Callable[[], PreparedChange]
) -> RowChangeReport:
    """Change rows in one commit; after each conflict ``prepare`` is called again.

    Ten conflicts in a row raise ``CommitConflictError``. A repeated call with the same
    ``request.commit`` publishes nothing again. Raise ``UnsupportedError`` if the table cannot be
    changed.
    """
    handle.pointer.require_writable()
    began = handle.environment.now_millis()
    if (earlier := earlier_commit(handle, handle.load(), request.commit)) is not None:
        return replayed_report(handle, request, earlier)
    attempts: list[_RowDeltaAttempt] = []

    def plan() -> Round[ChangeUnit, ChangedUnit] | None:
        attempts.append(_RowDeltaAttempt(handle, request, prepare()))
        return attempts[-1].plan()

    carry_out(
        Steps(
            name=f"{request.operation} of rows of {handle.uri}",
            head=lambda: handle.load().metadata_file,
            plan=plan,
            take=lambda changed: attempts[-1].take(changed),
            finish=lambda: attempts[-1].publish(),
            give_up=lambda: attempts[-1].give_up(),
            discard=lambda changed: attempts[-1].discard(changed),
            environment=handle.environment,
            executor=request.executor,
        )
    )
    millis = handle.environment.now_millis() - began
    report = replace(attempts[-1].report(), attempts=len(attempts), millis=millis)
    _log.info("%s in %s: %s", request.operation, handle.uri, report.reason)
    return report


def change_reason(request: ChangeRequest, rows: int | None, snapshot_id: int | None) -> str:
    """Return the outcome in one sentence.

    ``rows`` is the number of changed rows; None if it is unknown after a removal of whole files.
    """
    done = f"{request.operation.lower().removesuffix('e')}ed"
    some = "the rows of whole files" if rows is None else counted(rows, "row")
    if request.dry_run:
        return f"{some} would be {done}; nothing was changed"
    if request.operation == RowOperation.UPSERT:
        if snapshot_id is None:
            return "no rows to add or to remove, so no snapshot was published"
        replaced = counted(rows or 0, "stored row")
        return f"{replaced} replaced or deleted, published as snapshot {snapshot_id}"
    if snapshot_id is None:
        return "no row meets the condition, so no snapshot was made"
    if rows == 0:
        return f"no row meets the condition; snapshot {snapshot_id} records the commit"
    return f"{some} {done}, published as snapshot {snapshot_id}"


def replayed_report(
    handle: TableHandle, request: ChangeRequest, earlier: PublishedChange
) -> RowChangeReport:
    """Return the report for a change that an earlier attempt published."""
    assert earlier.snapshot is not None
    found = earlier.snapshot.snapshot_id
    return RowChangeReport(
        table=handle.uri,
        operation=request.operation,
        method="",
        dry_run=request.dry_run,
        read_snapshot_id=None,
        snapshot_id=found,
        rows=None,
        attempts=0,
        replayed=True,
        reason=f"already published as snapshot {found}; no action needed",
    )


@dataclass(slots=True)
class _RowDeltaAttempt:
    handle: TableHandle
    request: ChangeRequest
    prepared: PreparedChange
    _units: Sequence[ChangeUnit] = ()
    _changed: list[ChangedUnit] = field(default_factory=list)
    _added: list[pa.Table] = field(default_factory=list)
    _deletes: NewDeletes = field(default_factory=NewDeletes)
    _is_committing: bool = False
    _published: PublishedChange | None = None
    _bytes_done: int = 0
    _rows: int = 0

    def plan(self) -> Round[ChangeUnit, ChangedUnit]:
        properties = self.prepared.work.plan.loaded.metadata.properties
        most = int_property(properties, _TARGET, _TARGET_BYTES)
        self._units = units_of(self.prepared.searched, most)
        self._report_progress()
        return Round(units=self._units, work=self.prepared.work)

    def take(self, changed: ChangedUnit) -> None:
        self._changed.append(changed)
        self._bytes_done += changed.unit.bytes
        self._report_progress()

    def publish(self) -> None:
        """Publish the change, unless it is a dry run; delete the new files if the commit is known
        to have failed.
        """
        self._rows = sum(each.rows for each in self._changed)
        self._rows += self.prepared.work.count(self.prepared.whole)
        if self.request.dry_run:
            return
        if (more := self.prepared.add()) is not None:
            self._added.append(more)
        marked = [each for unit in self._changed for each in unit.marked]
        removed = [each.file for unit in self._changed for each in unit.removed]
        removed += self.prepared.whole
        plan = self.prepared.work.plan
        if not (marked or removed or self._entries or self.prepared.is_recorded):
            return
        self._deletes = new_deletes(plan, marked, self.handle.environment)
        self._is_committing = True
        with kept_if_published(self._delete_files):
            self._published = self._commit(removed, [each.file for each in marked])
        # Another process with the same identity published it meanwhile.
        if self._published.is_replayed:
            self._delete_files()

    def _commit(
        self,
        removed: Sequence[FileToChange],
        marked: Sequence[FileToChange],
    ) -> PublishedChange:
        request = self.request
        change = self._row_delta(removed, marked)
        return publish_change(
            self.handle,
            self.prepared.once(change),
            commit=request.commit,
            properties=request.properties,
            planned=self.prepared.work.plan.loaded,
        )

    def _row_delta(
        self, removed: Sequence[FileToChange], marked: Sequence[FileToChange]
    ) -> Produce:
        plan, entries = self.prepared.work.plan, self._entries
        added = pa.concat_tables(entries) if entries else None
        if plan.snapshot is None:
            return _FirstRows(self.handle.uri, added)
        delta = RowDelta(
            table=self.handle.uri,
            planned=plan.snapshot,
            version=plan.loaded.metadata.format_version,
            removed=removed,
            changed=marked,
            deletes=self._deletes.entries,
            replaced=self._deletes.replaced,
            added=added,
            unseen=self.prepared.unseen,
        )
        return _SameColumns(delta, plan.loaded.metadata.schema, plan.condition.columns)

    def give_up(self) -> None:
        """Delete the files of this attempt, unless they may be published."""
        if not self._is_committing:
            self._delete_files()

    def discard(self, changed: ChangedUnit) -> None:
        delete_files(self.prepared.work.plan.loaded.places, changed.paths)

    @property
    def _entries(self) -> list[pa.Table]:
        return [*self._own_entries, *([] if self.prepared.given is None else [self.prepared.given])]

    @property
    def _own_entries(self) -> list[pa.Table]:
        moved = (each.entries for each in self._changed)
        return [*(each for each in moved if each is not None), *self._added]

    def _delete_files(self) -> None:
        entries = self._own_entries
        added = (path for each in entries for path in each.column("file_path").to_pylist())
        places = self.prepared.work.plan.loaded.places
        delete_files(places, [*added, *self._deletes.paths])

    def report(self) -> RowChangeReport:
        published, work = self._published, self.prepared.work
        if published is not None and published.is_replayed:
            return replayed_report(self.handle, self.request, published)
        snapshot = None if published is None else published.snapshot
        snapshot_id = None if snapshot is None else snapshot.snapshot_id
        rewritten = sum(each.rewritten for each in self._changed)
        removed = sum(len(each.removed) for each in self._changed) - rewritten
        new = self._entries
        planned = work.plan.snapshot
        return RowChangeReport(
            table=self.handle.uri,
            operation=self.request.operation,
            method=work.method,
            dry_run=self.request.dry_run,
            read_snapshot_id=None if planned is None else planned.snapshot_id,
            snapshot_id=snapshot_id,
            rows=self._rows,
            files_read=len(self.prepared.searched),
            files_marked=sum(len(each.marked) for each in self._changed),
            files_rewritten=rewritten,
            files_removed=removed + len(self.prepared.whole),
            files_added=sum(map(len, new)),
            bytes_added=sum(sum(each.column("file_size_in_bytes").to_pylist()) for each in new),
            reason=change_reason(self.request, self._rows, snapshot_id),
        )

    def _report_progress(self) -> None:
        if self.request.on_progress is None:
            return
        self.request.on_progress(
            CompactProgress(
                table=self.handle.uri,
                units=len(self._units),
                done=len(self._changed),
                bytes=sum(unit.bytes for unit in self._units),
                bytes_done=self._bytes_done,
            )
        )


@dataclass(frozen=True, slots=True)
class _FirstRows:
    """Makes the first snapshot of a branch: it adds rows, or only records a commit.

    Raises ``CommitConflictError`` if another commit has made the first snapshot meanwhile.
    """

    table: str
    entries: pa.Table | None
    """The entries of new data files; None if the snapshot only records its commit."""

    def __call__(self, base: Base) -> FileChange | None:
        if base.parent is not None:
            raise CommitConflictError(
                f"the change of rows of {self.table} was planned before the first snapshot, but "
                "another commit was published since. Repeat the call, which plans again"
            )
        return ChangedFiles(() if self.entries is None else [self.entries], is_recorded=True)(base)


@dataclass(frozen=True, slots=True)
class _SameColumns:
    """Makes the change ``delta``, unless a column name in its condition now names another column.

    Raises ``CommitConflictError`` in that case.
    """

    delta: RowDelta
    schema: Schema
    names: Collection[str]

    def __call__(self, base: Base) -> FileChange:
        newest = base.loaded.metadata.schema
        for name in self.names:
            before, after = self.schema.named(name), newest.named(name)
            if before is not None and after is not None and before.id != after.id:
                raise CommitConflictError(
                    f"the change of rows of {self.delta.table} was not published: the name "
                    f"{name!r} was given to another column meanwhile. Repeat the call, which plans "
                    "again"
                )
        return self.delta(base)
