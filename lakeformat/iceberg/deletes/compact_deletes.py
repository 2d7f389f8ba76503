# SPDX-License-Identifier: Apache-2.0
"""Replaces the delete files of a table by new ones, usually fewer, that delete the same rows.

Data files do not change. Java's ``rewrite_position_delete_files``, and the option
``remove-dangling-deletes`` of Java's ``rewrite_data_files``, each do a part of this work.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyroaring import FrozenBitMap64

from lakeformat.errors import UnsupportedError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.deletes.delete_plan import DeletePlan, plan_delete_files
from lakeformat.iceberg.deletes.report import CompactDeletesReport, deletes_report
from lakeformat.iceberg.read.entry_columns import scopes
from lakeformat.iceberg.row_changes.matched_rows import FileToChange
from lakeformat.iceberg.row_changes.position_files import write_position_files
from lakeformat.iceberg.row_changes.row_delta import RowDelta
from lakeformat.iceberg.row_changes.vector_file import write_vectors
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import Base, FileChange, PublishedChange, publish_change
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["compact_deletes"]

_log = logging.getLogger(__name__)
_WITH_VECTORS = 3
"""The first format version with deletion vectors."""

_NewVector = tuple[FileToChange, DeletionVector]


def compact_deletes(
    handle: TableHandle,
    *,
    convert_equality: bool = False,
    rewrite_all: bool = False,
    commit: CommitId | None = None,
    dry_run: bool = False,
) -> CompactDeletesReport:
    """Merge delete files, and remove those that apply to no data file; the rows do not change.

    ``convert_equality`` also replaces equality deletes by position deletes. ``rewrite_all`` also
    rewrites position delete files that need no merging. A repeated call with the same ``commit``
    publishes nothing again. After a conflict everything is planned again; ten conflicts in a row
    raise ``CommitConflictError``. Raise ``UnsupportedError`` if the equality deletes of a data
    file must be replaced, but its manifest does not store the file's number of rows.
    """
    work = _DeleteCompaction(handle, convert_equality, rewrite_all, commit)
    if dry_run:
        return deletes_report(handle.uri, work.plan(), None, dry_run=True)
    handle.pointer.require_writable()
    if (earlier := earlier_commit(handle, handle.load(), commit)) is not None:
        return deletes_report(handle.uri, None, earlier)
    published = work.until_done()
    report = deletes_report(handle.uri, work.planned, published)
    _log.info("compaction of delete files of %s: %s", handle.uri, report.reason)
    return report


@dataclass(slots=True)
class _DeleteCompaction:
    handle: TableHandle
    convert_equality: bool
    rewrite_all: bool
    commit: CommitId | None
    planned: DeletePlan | None = None
    _made: list[_NewVector] = field(default_factory=list)
    _published: PublishedChange | None = None

    def plan(self) -> DeletePlan:
        return plan_delete_files(
            self.handle, convert_equality=self.convert_equality, rewrite_all=self.rewrite_all
        )

    def until_done(self) -> PublishedChange | None:
        """Plan and commit until a plan is published; return None if there is nothing to change."""
        carry_out(
            Steps(
                name=f"compaction of delete files of {self.handle.uri}",
                head=lambda: self.handle.load().metadata_file,
                plan=self._plan_round,
                take=self._made.append,
                finish=self._finish,
                environment=self.handle.environment,
            )
        )
        return self._published

    def _plan_round(self) -> Round[FileToChange, _NewVector] | None:
        self._made.clear()
        self.planned = plan = self.plan()
        if not plan.files and not plan.dangling:
            return None
        plan.scan.expect([each.split for each in plan.files])
        return Round(units=plan.files, work=partial(_deleted_rows, plan))

    def _finish(self) -> None:
        plan = self.planned
        assert plan is not None
        assert plan.snapshot is not None
        made = [each for each in self._made if each[1].cardinality]
        entries = _written(plan, made, self.handle)
        paths = [path for each in entries for path in each.column("file_path").to_pylist()]
        change = RowDelta(
            table=self.handle.uri,
            planned=plan.snapshot,
            version=plan.loaded.metadata.format_version,
            changed=plan.files,
            deletes=entries,
            replaced=[*plan.replaced, *plan.dangling],
        )
        discard = partial(delete_files, plan.loaded.places, dict.fromkeys(paths))
        with kept_if_published(discard):
            published = publish_change(self.handle, _SameRows(change), commit=self.commit)
        if published.is_replayed:  # another process with the same identity published it meanwhile
            discard()
        self._published = published


@dataclass(frozen=True, slots=True)
class _SameRows:
    """Publishes changed delete files with the operation ``replace``, because the rows do not
    change.
    """

    delta: RowDelta

    def __call__(self, base: Base) -> FileChange:
        return replace(self.delta(base), operation="replace")


def _deleted_rows(plan: DeletePlan, file: FileToChange) -> _NewVector:
    """Return ``file``, and the positions of the rows that its new delete file deletes."""
    if plan.with_keys and any(each.equality_ids for each in file.split.deletes):
        if (count := file.split.file.record_count) is None:
            raise UnsupportedError(
                f"the manifest has no row count for {file.path}, so the equality deletes "
                "of this file cannot be turned into positions: rewrite the data files with "
                "compact(rewrite_all=True)"
            )
        live = DeletionVector.of_parts(plan.scan.positions(file.split))
        return file, DeletionVector(FrozenBitMap64(range(count)) - live.positions)
    found = plan.scan.deleted_positions(file.split)
    return file, found or DeletionVector.of([])


def _written(plan: DeletePlan, made: Sequence[_NewVector], handle: TableHandle) -> list[pa.Table]:
    """Write new delete files; return their entries, with the sequence numbers of the replaced
    delete files.
    """
    if not made:
        return []
    has_vectors = plan.loaded.metadata.format_version >= _WITH_VECTORS
    write = write_vectors if has_vectors else write_position_files
    numbers = plan.numbers()
    return [_numbered(each, numbers) for each in write(plan.loaded, made, handle.environment)]


def _numbered(entries: pa.Table, numbers: dict[str, int]) -> pa.Table:
    place = entries.schema.get_field_index("sequence_number")
    found = pa.array([numbers[each] for each in scopes(entries)], pa.int64())
    return entries.set_column(place, entries.schema.field(place), found)
