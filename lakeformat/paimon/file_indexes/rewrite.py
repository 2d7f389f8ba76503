# SPDX-License-Identifier: Apache-2.0
"""Rewrites file indexes: plan, build, commit, and plan again after a conflict.

A new index needs a new manifest entry of its data file: a COMPACT commit removes the old entry and
adds the new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError, LakeError, UnsupportedError
from lakeformat.executor import require_executor
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.manifest_merge import pick_deletions
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.compact.partition_choice import WHOLE_TABLE, Chosen
from lakeformat.paimon.expiry_race import explaining_expiry, head_of
from lakeformat.paimon.file_indexes.build import BuiltIndex, build_index
from lakeformat.paimon.file_indexes.file_index_report import FileIndexOutcome, FileIndexReport
from lakeformat.paimon.file_indexes.plan import IndexUnit, plan_units
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.schema_changes.file_index_rules import indexed_columns
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.types.count_text import counted

__all__ = ["OnFiles", "rewrite_file_indexes"]

_log = logging.getLogger(__name__)
OnFiles: TypeAlias = Callable[[int, int], object]
"""Called with the number of files to change, and the number of files processed so far."""

_GROUP_FILES = 256
"""The number of files in one commit; a conflict repeats the work for at most this many files."""

_Outcome: TypeAlias = tuple[IndexUnit, BuiltIndex | None]
"""A file, and its new manifest entry; None if the entry would not change."""


def rewrite_file_indexes(
    handle: TableHandle,
    *,
    chosen: Chosen = WHOLE_TABLE,
    force: bool = False,
    dry_run: bool = False,
    executor: str | None = None,
    on_progress: OnFiles | None = None,
) -> FileIndexReport:
    """Give existing data files the file indexes that the table options request; rows do not change.

    With ``force``, indexes that match the options are built again. Raise InvalidRequestError if
    ``force`` is set and the options request no index, and UnsupportedError for a table with row
    tracking.
    """
    handle = newest_schema(handle)
    require_allowed(handle, Operation.COMPACT)
    if handle.options.row_tracking_enabled:
        raise UnsupportedError(
            f"{handle.uri} tracks row ids ('row-tracking.enabled'), which this version would "
            "lose: rewrite its file indexes with another engine"
        )
    if force and not indexed_columns(handle.options):
        raise InvalidRequestError(
            f"{handle.uri} sets no file index, so none can be rebuilt: set an option first, for "
            "example with alter_table(…, set_option('file-index.bloom-filter.columns', 'a,b'))"
        )
    run = _IndexRewrite(handle, chosen, force, require_executor(executor), on_progress)
    if dry_run:
        run.look()
    else:
        run.until_done()
    report = run.report(dry_run=dry_run)
    _log.info("rewrite of the file indexes of %s: %s", handle.name, report.reason)
    return report


@dataclass(slots=True)
class _IndexRewrite:
    handle: TableHandle
    chosen: Chosen
    force: bool
    executor: str
    on_progress: OnFiles | None = None
    files: int = 0
    units: list[IndexUnit] = field(default_factory=list)
    published: list[BuiltIndex] = field(default_factory=list)
    snapshot_ids: list[int] = field(default_factory=list)
    _settled: set[str] = field(default_factory=set)
    """The names of files that have all indexes that can be built for them."""
    _waiting: list[_Outcome] = field(default_factory=list)
    """The files whose new indexes are not committed yet."""
    _done: int = 0
    _total: int = 0

    def look(self) -> None:
        """Plan the rewrite on the newest snapshot, without files that are done."""
        self.handle = newest_schema(self.handle)
        head = latest_snapshot(self.handle.storage, self.handle.layout)
        if head is None:
            return
        self.files, units = plan_units(self.handle, head, chosen=self.chosen, force=self.force)
        self.units = [unit for unit in units if _name(unit) not in self._settled]

    def until_done(self) -> None:
        """Build and publish indexes in groups; plan a file again if another commit changed it."""
        carry_out(
            Steps(
                name=f"rewriting the file indexes of {self.handle.uri}",
                head=head_of(self.handle),
                plan=self._plan_round,
                take=self._take,
                finish=self._publish_waiting,
                give_up=self._discard_waiting,
                discard=lambda outcome: _discard([outcome]),
                environment=self.handle.environment,
                executor=self.executor,
            )
        )

    def _plan_round(self) -> Round[IndexUnit, _Outcome] | None:
        self.look()
        if not self.units:
            return None
        self._done = len(self._settled)
        self._total = self._done + len(self.units)
        return Round(units=self.units, work=self._build)

    def _take(self, outcome: _Outcome) -> None:
        self._waiting.append(outcome)
        self._done += 1
        if self.on_progress is not None:
            self.on_progress(self._total, self._done)
        if len(self._waiting) >= _GROUP_FILES:
            self._publish_waiting()

    def _publish_waiting(self) -> None:
        group, self._waiting = self._waiting, []
        built = [made for _, made in group if made is not None]
        with kept_if_published(lambda: _discard(group)):
            self._commit(built)
        self.published += built
        self._settled |= {_name(unit) for unit, _ in group}

    def _discard_waiting(self) -> None:
        _discard(self._waiting)
        self._waiting = []

    def _commit(self, built: list[BuiltIndex]) -> None:
        if not built:
            return
        places = {unit.entry.identity: place for place, unit in enumerate(self.units)}
        built.sort(key=lambda each: places[each.unit.entry.identity])
        # The run may add an entry again that an earlier commit deleted. pypaimon would then treat
        # the file as deleted. So the first commit merges manifests, which drops the deletions.
        # Later commits of the run add no entry that the run has deleted.
        options = CommitOptions(merge=None if self.snapshot_ids else pick_deletions)
        report = commit_messages(self.handle, _messages(self.handle, built), options)
        assert report.snapshot_id is not None
        self.snapshot_ids.append(report.snapshot_id)

    def _build(self, unit: IndexUnit) -> _Outcome:
        try:
            with explaining_expiry(self.handle, unit.snapshot):
                return unit, build_index(self.handle, unit)
        except LakeError as error:
            place = unit.path or "the table"
            raise type(error)(
                f"could not build the index of {_name(unit)} in {place}: {error}"
            ) from error

    def report(self, *, dry_run: bool) -> FileIndexReport:
        sizes = {each.unit.entry.file.file_name: each.index_bytes for each in self.published}
        units = self.units if dry_run else [each.unit for each in self.published]
        would = "would change" if dry_run else "were changed"
        wanted = indexed_columns(self.handle.options)
        if units:
            reason = f"the indexes of {len(units)} of {counted(self.files, 'file')} {would}"
        elif wanted:
            reason = f"none of {counted(self.files, 'file')} needs another index"
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


def _name(unit: IndexUnit) -> str:
    return unit.entry.file.file_name


def _discard(outcomes: Sequence[_Outcome]) -> None:
    for _, made in outcomes:
        if made is not None:
            made.discard()


def _messages(handle: TableHandle, built: Sequence[BuiltIndex]) -> list[CommitMessage]:
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
