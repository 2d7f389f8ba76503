# SPDX-License-Identifier: Apache-2.0
"""Publishes rewritten groups: all in one commit, or some at a time, as they are done.

With partial progress, a commit that conflicts is split: its groups are published one by one, and
those that conflict are dropped. A retry with the same identity leaves out the files that earlier
attempts have published. Only the commit that completes the work has the identity itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeformat.errors import CommitConflictError, CommitOutcomeUnknownError, LakeError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact.commit import replace_units
from lakeformat.iceberg.compact.plan import CompactPlan
from lakeformat.iceberg.compact.run import RewrittenUnit
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import PublishedChange, publish_change
from lakeformat.tables.commit_id import CommitId

__all__ = ["GroupCommits", "earlier_parts"]

_USER, _IDENTIFIER = "lake.part-of-user", "lake.part-of-identifier"


def earlier_parts(metadata: TableMetadata, branch: str, commit: CommitId | None) -> list[int]:
    """Return the snapshots of a branch with parts of a commit that was not completed."""
    head = metadata.references.get(branch)
    if commit is None or head is None:
        return []
    wanted = _part_of(commit).items()
    history = metadata.ancestry(head.snapshot_id)
    return [each.snapshot_id for each in history if wanted <= each.summary.items()]


@dataclass(slots=True)
class GroupCommits:
    """The commits of the groups of one plan."""

    handle: TableHandle
    plan: CompactPlan
    commit: CommitId | None
    most: int | None
    """The number of commits; None for one commit of all groups or none."""
    published: list[PublishedChange] = field(default_factory=list)
    done: list[RewrittenUnit] = field(default_factory=list)
    """The groups that are published."""
    completed: Snapshot | None = None
    """The commit of another process with the same identity, which completed the work meanwhile."""
    repeated: list[RewrittenUnit] = field(default_factory=list)
    """The groups that were rewritten again although they are in that commit."""
    dropped: list[tuple[RewrittenUnit, str]] = field(default_factory=list)
    """The groups that conflicted, and why."""
    millis: int = 0
    _waiting: list[RewrittenUnit] = field(default_factory=list)
    taken: list[RewrittenUnit] = field(default_factory=list)
    """The groups that are rewritten, published or not."""

    def add(self, made: RewrittenUnit) -> None:
        """Take a rewritten group; publish those that wait if they are enough for a commit."""
        self._waiting.append(made)
        self.taken.append(made)
        is_last = len(self.taken) == len(self.plan.units)  # ``finish`` publishes it
        if not is_last and len(self._waiting) >= self._groups_per_commit():
            self._publish_waiting(None)

    def finish(self) -> None:
        """Publish the waiting groups; if the outcome of the commit is unknown, keep their files."""
        is_whole = len(self.taken) == len(self.plan.units) and not self.dropped
        self._publish_waiting(self.commit if is_whole else None)

    def give_up(self) -> None:
        """Delete the files of groups that are not published."""
        self.delete(*self._waiting)
        self._waiting.clear()

    def delete(self, *made: RewrittenUnit) -> None:
        """Delete the new files of groups."""
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
        """Publish groups; if that fails, delete their files, unless the groups can be published one
        by one.
        """
        part = {} if self.commit is None or commit is not None else _part_of(self.commit)
        change = replace_units(self.plan, made)
        try:
            published = publish_change(self.handle, change, commit=commit, properties=part)
        except CommitOutcomeUnknownError:
            raise
        except LakeError as error:
            if not (can_be_split and isinstance(error, CommitConflictError)):
                self.delete(*made)
            raise
        if published.is_replayed:  # by another process, while this one wrote
            self.delete(*made)
            self.completed, self.repeated = published.snapshot, made
            return
        self.published.append(published)
        self.done += made


def _part_of(commit: CommitId) -> dict[str, str]:
    return {_USER: commit.user, _IDENTIFIER: str(commit.identifier)}
