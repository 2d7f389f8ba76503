# SPDX-License-Identifier: Apache-2.0
"""Publishes the files of an UPSERT, and deletes the rows of given keys, in one commit.

Other processes have written these files. Only the keys of their rows are read: first to check the
keys, then by each worker that searches stored files. So memory does not depend on the number of new
rows. After an error the files are kept, because they belong to the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.executor import Executor, where_to_work
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.read.file_rows import POSITION
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.row_changes.changed_files import UnitWork
from lakeformat.iceberg.row_changes.file_keys import FileKeys
from lakeformat.iceberg.row_changes.given_keys import key_fields
from lakeformat.iceberg.row_changes.matched_rows import FileToChange, MatchedFile, plan_matches
from lakeformat.iceberg.row_changes.method import method_of
from lakeformat.iceberg.row_changes.redo import require_newest
from lakeformat.iceberg.row_changes.run import ChangeRequest, PreparedChange, run_change
from lakeformat.iceberg.row_changes.upsert import MERGE, upsert_report
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.iceberg.write.commit_prepared import PublishedOnce, no_entries, with_unpublished
from lakeformat.iceberg.write.foreign_entries import checked_entries, require_present
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.iceberg.write.publish import PublishedChange
from lakeformat.iceberg.write.report import UpsertReport, write_report
from lakeformat.rows.conditions.predicate import Predicate
from lakeformat.rows.groups import Positions
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.row_change_report import RowOperation

__all__ = ["upsert_messages"]


def upsert_messages(
    handle: TableHandle,
    messages: Sequence[IcebergCommitMessage],
    by: Sequence[str],
    *,
    executor: str | Executor | None,
    commit: CommitId | None,
    properties: Mapping[str, str] | None,
) -> UpsertReport:
    """Publish prepared files: their rows replace the stored rows with the same keys.

    Stored rows with keys in ``deleted_keys`` of the messages are deleted. Raise
    ``InvalidRequestError`` if a key is null or repeated, or if the partition spec was changed since
    the files were written. With ``commit.replaces`` raise it also if a later commit may have
    changed rows with the same keys.
    """
    request = ChangeRequest(
        operation=RowOperation.UPSERT,
        commit=commit,
        properties=checked_properties(properties),
        executor=where_to_work(executor),
    )
    handle.pointer.require_writable()
    loaded = handle.load()
    method_of(loaded.metadata, MERGE)
    names = [each.name for each in key_fields(loaded.metadata.schema, by)]
    entries = checked_entries(loaded, handle.uri, messages)
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        report = write_report(handle.uri, earlier)
        unpublished = with_unpublished(loaded, report, earlier.snapshot, entries)
        return UpsertReport(**asdict(unpublished))
    deleted = [each.deleted_keys for each in messages if each.deleted_keys]
    if not entries and not deleted:
        return UpsertReport(
            **asdict(write_report(handle.uri, PublishedChange(None, 0, is_replayed=False)))
        )
    require_present(loaded, handle.uri, entries)
    bases = {each.base_snapshot for each in messages}
    files = _NewFiles(handle, entries, names, bases, deleted, commit)
    changed = run_change(handle, request, files.prepared)
    rows = sum(each.rows for each in messages)
    done = "replaced or deleted" if deleted else "replaced"
    found = upsert_report(handle, changed, rows, done)
    if not found.replayed:
        return found
    newest = handle.load()
    snapshot = newest.metadata.snapshot(found.snapshot_id or 0)
    return UpsertReport(**asdict(with_unpublished(newest, found, snapshot, entries)))


@dataclass(frozen=True, slots=True)
class _NewFiles:
    """The files to publish; their keys are checked once for each schema of the table."""

    handle: TableHandle
    entries: Sequence[pa.Table]
    names: Sequence[str]
    bases: set[int]
    """The ids of the snapshots that were the newest when the writers of the files began."""
    deleted: Sequence[pa.Table]
    """Keys whose stored rows are deleted."""
    commit: CommitId | None
    """The identity by which a repeated call finds the commit."""
    _conditions: dict[int, Predicate] = field(default_factory=dict)
    """The condition that the keys meet, by schema id."""

    def prepared(self) -> PreparedChange:
        """Plan the upsert against the newest snapshot.

        Raise ``InvalidRequestError`` if the partition spec was changed since the files were
        written.
        """
        loaded = self.handle.load()
        metadata = loaded.metadata
        if any(each["spec_id"][0].as_py() != metadata.default_spec_id for each in self.entries):
            raise InvalidRequestError(
                f"the partition spec of {self.handle.uri} was changed after the prepared files "
                "were written, so these files cannot replace rows. Nothing was published: write "
                "the rows again"
            )
        [entries] = self.entries or [no_entries(loaded)]
        fields = key_fields(metadata.schema, self.names)
        keys = FileKeys(loaded, entries, fields, self.deleted)
        number = metadata.schema.schema_id
        if number not in self._conditions:
            self._conditions[number] = keys.condition()
        condition = self._conditions[number]
        plan = plan_matches(loaded, self.handle.branch, condition, with_all_deletes=True)
        require_newest(self.handle, loaded, self.commit, plan.condition)
        files = (*plan.whole, *plan.open)
        plan.scan.expect([each.split for each in files])
        work = UnitWork(
            plan=plan,
            method=method_of(metadata, MERGE),
            find=_KeySearch(plan.scan, keys),
            update=None,
            environment=self.handle.environment,
            is_dry_run=False,
        )
        return PreparedChange(
            work=work,
            searched=files,
            unseen=plan.condition,
            given=entries if self.entries else None,
            # Otherwise a repeated commit would delete rows that got these keys later.
            is_recorded=self.commit is not None and bool(self.deleted),
            once=lambda produce: PublishedOnce(self.handle.uri, produce, self.bases, self.entries),
        )


@dataclass(frozen=True, slots=True)
class _KeySearch:
    """Finds the stored rows that have one of the keys."""

    scan: Scan
    keys: FileKeys

    def __call__(self, file: FileToChange) -> MatchedFile:
        positions = DeletionVector.of_parts(self._positions(file))
        return MatchedFile(file, positions, self.scan.deleted_positions(file.split))

    def _positions(self, file: FileToChange) -> Iterator[Positions]:
        fields = self.keys.fields
        for part in self.keys.parts():
            for batch in self.scan.read_fields(file.split, (*fields, POSITION)):
                found = part.numbers(batch.columns[: len(fields)]) >= 0
                yield batch.column(len(fields)).to_numpy()[found]
