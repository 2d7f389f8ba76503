# SPDX-License-Identifier: Apache-2.0
"""DELETE: find the rows, write their positions, publish in one commit; again after a conflict.

Files of which all rows are deleted leave the table. Other files get deletion vectors in version 3
and files of position deletes in version 2, which also have the rows that older ones delete.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.row_changes.matched_rows import (
    FileToChange,
    MatchedFile,
    MatchPlan,
    matched_rows,
    plan_matches,
)
from lakeformat.iceberg.row_changes.new_deletes import new_deletes
from lakeformat.iceberg.row_changes.row_delta import RowDelta, is_serializable
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.iceberg.write.file_choice import files_where
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.overwrite import delete_chosen
from lakeformat.iceberg.write.publish import PublishedChange, publish_change
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["delete_rows"]

_log = logging.getLogger(__name__)
_NOTHING = PublishedChange(None, 0, is_replayed=False)
_MODE = "write.delete.mode"


def delete_rows(
    handle: TableHandle, where: Where, *, commit: CommitId | None = None
) -> WriteReport:
    """Delete the rows that meet a condition; the same ``commit`` publishes once.

    If other commits change the same files meanwhile, the rows are searched again. With
    ``write.delete.isolation-level=snapshot`` rows that they add are kept.
    """
    handle.pointer.require_writable()
    metadata = handle.load().metadata
    choice = files_where(metadata, where)
    if all(choice.is_decided_by(metadata, spec) for spec in metadata.partition_specs):
        return delete_chosen(handle, lambda _: choice, commit=commit)
    if (earlier := earlier_commit(handle, handle.load(), commit)) is not None:
        return write_report(handle.uri, earlier)
    report = write_report(handle.uri, _Delete(handle, where, commit).until_done())
    _log.info("delete of rows of %s: %s", handle.uri, report.reason)
    return report


@dataclass(slots=True)
class _Delete:
    """One delete from its first plan to its publication."""

    handle: TableHandle
    where: Where
    commit: CommitId | None
    _plan: MatchPlan | None = None
    _matched: list[MatchedFile] = field(default_factory=list)
    _published: PublishedChange = _NOTHING

    def until_done(self) -> PublishedChange:
        """Delete until a plan is published, or finds no rows."""
        carry_out(
            Steps(
                name=f"delete of rows of {self.handle.uri}",
                head=lambda: self.handle.load().metadata_file,
                plan=self._plan_round,
                take=self._take,
                finish=self._finish,
                environment=self.handle.environment,
            )
        )
        return self._published

    def _plan_round(self) -> Round[FileToChange, MatchedFile] | None:
        self._matched.clear()
        self._plan = plan = plan_matches(self.handle, self.where)
        if not plan.whole and not plan.open:
            return None
        if plan.open:
            _require_row_deletes(plan)
        plan.scan.expect([each.split for each in plan.open])
        return Round(units=plan.open, work=partial(matched_rows, plan.scan))

    def _take(self, matched: MatchedFile) -> None:
        if matched.positions.cardinality:
            self._matched.append(matched)

    def _finish(self) -> None:
        plan, matched = self._plan, [*self._matched]
        assert plan is not None
        whole = [*plan.whole, *(each.file for each in matched if each.is_whole)]
        partly = [each for each in matched if not each.is_whole]
        if not whole and not partly:
            return
        assert plan.snapshot is not None
        metadata, places = plan.loaded.metadata, plan.loaded.places
        new = new_deletes(plan, partly, self.handle.environment)
        change = RowDelta(
            table=self.handle.uri,
            planned=plan.snapshot,
            version=metadata.format_version,
            removed=whole,
            changed=[each.file for each in partly],
            deletes=new.entries,
            replaced=new.replaced,
            unseen=plan.condition if is_serializable(metadata.properties, "delete") else None,
        )
        with kept_if_published(lambda: delete_files(places, new.paths)):
            published = publish_change(self.handle, change, commit=self.commit)
        if published.is_replayed:  # by another process, while this one wrote
            delete_files(places, new.paths)
        self._published = published


def _require_row_deletes(plan: MatchPlan) -> None:
    """Raise if rows of the table cannot be deleted by their positions."""
    metadata = plan.loaded.metadata
    names = ", ".join(sorted(plan.condition.columns))
    files = (
        f"{len(plan.open)} files of {metadata.location} may hold some of these rows beside other"
    )
    if metadata.format_version == 1:
        raise UnsupportedError(
            f"{files} ones, and format version 1 removes whole files only: give a condition that "
            f"follows the partitions or the bounds of {names}, or upgrade the table to version 2"
        )
    if metadata.properties.get(_MODE, "merge-on-read").lower() == "copy-on-write":
        raise UnsupportedError(
            f"{files} ones, and {_MODE!r} is 'copy-on-write', but this version rewrites no files "
            "for a delete: set it to 'merge-on-read', or delete the rows with Spark"
        )
