"""The whole of a rewrite of file indexes: plan, build, commit, and again where others were first.

A file with another index is another entry of the manifest: the old one is taken out and the new
one comes in, in a COMPACT commit, as what a compaction has made of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakeformat.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    SnapshotExpiredError,
    UnsupportedError,
)
from lakeformat.executor import outcomes_of, require_executor
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.manifest_merge import pick_deletions
from lakeformat.paimon.compact.plan import newest_schema
from lakeformat.paimon.expiry_race import again_if_overtaken, telling_of_expiry
from lakeformat.paimon.file_indexes.build import BuiltIndex, build_index
from lakeformat.paimon.file_indexes.file_index_report import FileIndexOutcome, FileIndexReport
from lakeformat.paimon.file_indexes.plan import IndexUnit, plan_units
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.read.where import Partitions
from lakeformat.paimon.schema_changes.file_index_rules import indexed_columns
from lakeformat.rows.conditions.filter import Where

__all__ = ["OnFiles", "rewrite_file_indexes"]

_log = logging.getLogger(__name__)
OnFiles: TypeAlias = Callable[[int, int], object]
"""Hears of how many files there are, and of how many the index is built."""

_GROUP_FILES = 256
"""So many files are committed together: a conflict costs no more of the work."""
_CONFLICTS = 10


def rewrite_file_indexes(
    handle: TableHandle,
    *,
    where: Where | None = None,
    partitions: Partitions | None = None,
    force: bool = False,
    dry_run: bool = False,
    executor: str | None = None,
    on_progress: OnFiles | None = None,
) -> FileIndexReport:
    """Bring the indexes of existing files to what the options ask for; no row changes."""
    handle = newest_schema(handle)
    require_allowed(handle, Operation.COMPACT)
    if handle.options.row_tracking_enabled:
        raise UnsupportedError(
            f"{handle.uri} numbers its rows ('row-tracking.enabled'): this version adds files to "
            "it and does not rewrite what is known of them"
        )
    if force and not indexed_columns(handle.options):
        raise InvalidRequestError(
            f"{handle.uri} asks for no file index, so there is none to build anew: set one first, "
            "such as by alter_table(…, set_option('file-index.bloom-filter.columns', 'a,b'))"
        )
    run = _Run(handle, where, partitions, force, require_executor(executor), on_progress)
    if dry_run:
        run.look()
    else:
        run.until_done()
    report = run.report(dry_run=dry_run)
    _log.info("rewrite file indexes table=%s %s", handle.uri, report.reason)
    return report


@dataclass(slots=True)
class _Run:
    """What has happened so far."""

    handle: TableHandle
    where: Where | None
    partitions: Partitions | None
    force: bool
    executor: str
    on_progress: OnFiles | None = None
    files: int = 0
    units: list[IndexUnit] = field(default_factory=list)
    published: list[BuiltIndex] = field(default_factory=list)
    snapshot_ids: list[int] = field(default_factory=list)
    _settled: set[str] = field(default_factory=set)
    """Files that are done, or have what can be built of them."""

    def look(self) -> None:
        """Plan on the newest snapshot."""
        self.handle = newest_schema(self.handle)
        head = latest_snapshot(self.handle.storage, self.handle.layout)
        if head is None:
            return
        self.files, units = plan_units(
            self.handle,
            head,
            where=self.where,
            partitions=self.partitions,
            force=self.force,
        )
        self.units = [unit for unit in units if unit.entry.file.file_name not in self._settled]

    def until_done(self) -> None:
        """Build and publish in groups; what is overtaken is planned again."""
        for tries_left in reversed(range(_CONFLICTS)):
            again_if_overtaken(self.handle, self.look)
            try:
                for start in range(0, len(self.units), _GROUP_FILES):
                    self._group(self.units[start : start + _GROUP_FILES])
            except (CommitConflictError, SnapshotExpiredError):
                if not tries_left:
                    raise
            else:
                return

    def _group(self, units: Sequence[IndexUnit]) -> None:
        built: list[BuiltIndex] = []

        def build(unit: IndexUnit) -> None:
            # Kept at once: when another unit fails, what this one wrote is removed all the same.
            if (made := self._build(unit)) is not None:
                built.append(made)

        try:
            for done, _ in enumerate(outcomes_of(self.executor, build, units), 1):
                if self.on_progress is not None:
                    self.on_progress(
                        len(self._settled) + len(self.units), len(self._settled) + done
                    )
        except BaseException:
            _discard(built)
            raise
        try:
            self._commit(built, units)
        except CommitOutcomeUnknownError:
            raise  # the table may refer to the files: they stay
        except LakeError:  # of anything else nobody knows whether it came before or after
            _discard(built)
            raise
        self.published += built
        self._settled |= {unit.entry.file.file_name for unit in units}

    def _commit(self, built: list[BuiltIndex], units: Sequence[IndexUnit]) -> None:
        if not built:
            return
        places = {unit.entry.identity: place for place, unit in enumerate(units)}
        built.sort(key=lambda each: places[each.unit.entry.identity])
        # A file may come in as it was before this run: pypaimon must not find it deleted then. What
        # the run itself deletes it does not bring back, so merging once is enough.
        options = CommitOptions(merge=None if self.snapshot_ids else pick_deletions)
        report = commit_messages(self.handle, _messages(self.handle, built), options)
        assert report.snapshot_id is not None
        self.snapshot_ids.append(report.snapshot_id)

    def _build(self, unit: IndexUnit) -> BuiltIndex | None:
        try:
            with telling_of_expiry(self.handle, unit.snapshot):
                return build_index(self.handle, unit)
        except LakeError as error:
            name, place = unit.entry.file.file_name, unit.path or "the table"
            raise type(error)(f"the index of {name} in {place}: {error}") from error

    def report(self, *, dry_run: bool) -> FileIndexReport:
        """What was done, or would be."""
        sizes = {each.unit.entry.file.file_name: each.index_bytes for each in self.published}
        units = self.units if dry_run else [each.unit for each in self.published]
        would = "would get" if dry_run else "got"
        wanted = indexed_columns(self.handle.options)
        if units:
            reason = f"{len(units)} of {self.files} files {would} other indexes"
        elif wanted:
            reason = f"all {self.files} files have the indexes that can be built of them"
        else:
            reason = "the table's options ask for no file index, and no file has one"
        return FileIndexReport(
            table=self.handle.uri,
            dry_run=dry_run,
            wanted=tuple(f"{kind} of {name}" for kind, names in wanted.items() for name in names),
            snapshot_ids=tuple(self.snapshot_ids),
            files=self.files,
            changed=tuple(
                FileIndexOutcome(
                    partition=unit.path,
                    bucket=unit.entry.bucket,
                    file=unit.entry.file.file_name,
                    reason=unit.reason,
                    index_bytes=sizes.get(unit.entry.file.file_name, 0),
                )
                for unit in units
            ),
            index_bytes=sum(sizes.values()),
            reason=reason,
        )


def _discard(built: Sequence[BuiltIndex]) -> None:
    for each in built:
        each.discard()


def _messages(handle: TableHandle, built: Sequence[BuiltIndex]) -> list[CommitMessage]:
    """One for each file: the same file goes out with its old index and comes in with the new."""
    return [
        CommitMessage(
            table=handle.uri,
            partition=each.unit.entry.partition,
            bucket=each.unit.entry.bucket,
            total_buckets=each.unit.entry.total_buckets,
            base_snapshot=each.unit.snapshot.id,
            branch=handle.layout.branch,
            compact_before=(each.unit.entry.file,),
            compact_after=(each.file,),
        )
        for each in built
    ]
