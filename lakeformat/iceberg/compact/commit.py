# SPDX-License-Identifier: Apache-2.0
"""Commits rewritten groups of files: all in one commit, or with partial progress in several.

With partial progress, a commit with a conflict is repeated group by group, and the groups that
conflict are dropped. Only the commit that completes the work has the identity of the caller. The
other commits store this identity in the summary properties ``lake.part-of-*``. A retry with the
same identity finds these commits, and does not rewrite the files that these commits added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lakeformat.errors import CommitConflictError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact.plan import CompactPlan
from lakeformat.iceberg.compact.run import RewrittenUnit
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import PublishedChange, publish_change
from lakeformat.iceberg.write.replace_files import ReplaceFiles
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["GroupCommits", "earlier_parts"]

_USER, _IDENTIFIER = "lake.part-of-user", "lake.part-of-identifier"


def earlier_parts(metadata: TableMetadata, branch: str, commit: CommitId | None) -> list[int]:
    """Return the ids of the snapshots in which earlier attempts published a part of the work.

    The summaries of these snapshots name ``commit`` in the properties ``lake.part-of-*``. The
    oldest snapshot is first. The list is empty if ``commit`` is None.
    """
    head = metadata.references.get(branch)
    if commit is None or head is None:
        return []
    wanted = _part_of(commit).items()
    history = metadata.ancestry(head.snapshot_id)
    return [each.snapshot_id for each in history if wanted <= each.summary.items()][::-1]


@dataclass(slots=True)
class GroupCommits:
    """Commits the groups of one plan."""

    handle: TableHandle
    plan: CompactPlan
    commit: CommitId | None
    most: int | None
    """With partial progress, the largest number of commits; conflicts can add more. None for a
    single commit of all groups.
    """
    published: list[PublishedChange] = field(default_factory=list)
    done: list[RewrittenUnit] = field(default_factory=list)
    """The published groups."""
    completed: Snapshot | None = None
    """The snapshot in which another process with the same identity completed the work meanwhile,
    else None.
    """
    repeated: list[RewrittenUnit] = field(default_factory=list)
    """Groups that this process rewrote, but that ``completed`` already contains."""
    dropped: list[tuple[RewrittenUnit, str]] = field(default_factory=list)
    """Groups that were in conflict, each with the reason."""
    millis: int = 0
    _waiting: list[RewrittenUnit] = field(default_factory=list)
    taken: list[RewrittenUnit] = field(default_factory=list)
    """All groups that ``add`` received, published or not."""

    def add(self, made: RewrittenUnit) -> None:
        """Add the rewritten group ``made`` to the waiting groups, or commit it together with them.

        Without partial progress, nothing is committed here. With partial progress, the waiting
        groups are committed as soon as there are G / ``most`` of them, rounded up, where G is the
        number of groups in the plan. ``finish`` commits the last groups.
        """
        self._waiting.append(made)
        self.taken.append(made)
        is_last = len(self.taken) == len(self.plan.units)  # ``finish`` commits the last groups
        if not is_last and len(self._waiting) >= self._groups_per_commit():
            self._publish_waiting(None)

    def finish(self) -> None:
        """Commit the waiting groups; if the outcome is unknown, their new files are kept.

        Without partial progress, raise ``CommitConflictError`` if another commit changed the old
        files.
        """
        is_whole = len(self.taken) == len(self.plan.units) and not self.dropped
        self._publish_waiting(self.commit if is_whole else None)

    def give_up(self) -> None:
        """Delete the new files of the waiting groups."""
        self.delete(*self._waiting)
        self._waiting.clear()

    def delete(self, *made: RewrittenUnit) -> None:
        """Delete the new files of groups that are not published."""
        for each in made:
            delete_files(self.plan.loaded.places, each.paths)

    def _groups_per_commit(self) -> int:
        groups = len(self.plan.units)
        return groups if self.most is None else -(-groups // self.most)

    def _publish_waiting(self, commit: CommitId | None) -> None:
        made = [*self._waiting]
        self._waiting.clear()
        if not made:
            return
        began = self.handle.environment.now_millis()
        if self.most is None:
            self._publish(made, commit)
        else:
            self._publish_or_drop(made, commit)
        self.millis += self.handle.environment.now_millis() - began

    def _publish_or_drop(self, made: list[RewrittenUnit], commit: CommitId | None) -> None:
        try:
            self._publish(made, commit, can_be_split=len(made) > 1)
        except CommitConflictError as conflict:
            if len(made) == 1:
                self.dropped.append((made[0], str(conflict)))
                return
            self._waiting = made
            while self._waiting:
                self._publish_or_drop([self._waiting.pop(0)], None)

    def _publish(
        self, made: list[RewrittenUnit], commit: CommitId | None, *, can_be_split: bool = False
    ) -> None:
        """Commit groups; delete their new files if the commit is known to have failed.

        With ``can_be_split`` the files are kept after a conflict, because the groups are then
        committed one by one.
        """
        part = {} if self.commit is None or commit is not None else _part_of(self.commit)
        change = _replace_units(self.plan, made)
        again = (CommitConflictError,) if can_be_split else ()
        with kept_if_published(partial(self.delete, *made), also_after=again):
            published = publish_change(self.handle, change, commit=commit, properties=part)
        if published.is_replayed:  # another process with the same identity published them meanwhile
            self.delete(*made)
            self.completed, self.repeated = published.snapshot, made
            return
        self.published.append(published)
        self.done += made


def _replace_units(plan: CompactPlan, made: Sequence[RewrittenUnit]) -> ReplaceFiles:
    assert plan.snapshot is not None
    spec_id = plan.loaded.metadata.default_spec_id
    moved = [e.entries for e in made if any(file.spec_id != spec_id for file in e.unit.files)]
    return ReplaceFiles(
        name=f"compaction of {plan.table}",
        planned=plan.loaded.metadata,
        snapshot=plan.snapshot,
        files=[file for each in made for file in each.unit.files],
        added=pa.concat_tables([each.entries for each in made]),
        moved=pa.concat_tables(moved) if moved else None,
    )


def _part_of(commit: CommitId) -> dict[str, str]:
    return {_USER: commit.user, _IDENTIFIER: str(commit.identifier)}
