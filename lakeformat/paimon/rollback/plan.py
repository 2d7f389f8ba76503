# SPDX-License-Identifier: Apache-2.0
"""Plans the deletions of a rollback, and refuses the rollback if tags or branches need the
snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.consumer import Consumer, read_consumers
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.rollback.identity import StartedCut
from lakeformat.paimon.tags.in_use import is_protection
from lakeformat.paimon.tags.source import Origin

__all__ = [
    "RollbackPlan",
    "following",
    "objection_to",
    "plan_rollback",
    "quoted",
    "require_unneeded",
]


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The snapshots, changelogs and tags that a rollback deletes, and the consumers that it sets
    back.
    """

    target: Origin
    snapshots: Sequence[int]
    """The numbers of the snapshots to delete, newest first."""
    changelogs: Sequence[int]
    tags: Sequence[str]
    consumers: Sequence[Consumer]
    branches: Sequence[str]
    """Names of branches that began at a snapshot to be deleted; the branches are kept."""
    newest: int | None = None
    """If an earlier attempt has deleted every snapshot of its plan: the number of the newest
    snapshot that is kept. Otherwise None.
    """

    @property
    def is_empty(self) -> bool:
        """True if the target has not expired, and nothing must be deleted or set back."""
        found = (self.snapshots, self.changelogs, self.tags, self.consumers)
        return self.target.tag is None and not any(found)


def plan_rollback(
    handle: TableHandle, target: Origin, cut: StartedCut | None = None
) -> RollbackPlan:
    """Return the plan of a rollback.

    The plan has the snapshots, tags and changelogs that are newer than the target, and the
    consumers that have already read newer snapshots. But if an earlier attempt ``cut`` has deleted
    every snapshot that it planned to delete, the plan has only the rest of that attempt, such as
    changelogs to delete. Then commits made after that attempt are kept.

    Raise InvalidRequestError if the target is a tag of a history that was rolled back.
    """
    storage, layout, number = handle.storage, handle.layout, target.snapshot.id
    if cut is not None and cut.is_cut(read_snapshot_if_present(storage, layout, number + 1)):
        return _rest(handle, target, cut)
    ids = snapshot_ids(storage, layout)
    if target.tag is not None and (number in ids or (ids and number > ids[-1])):
        raise InvalidRequestError(
            f"tag {target.tag!r} of {handle.uri} is of a history that was rolled back: its "
            f"snapshot {number} is no longer in the table's history. To restore its rows, leave "
            "out as_latest=False (--cut-history)"
        )
    behind = [each for each in ids if each > number]
    return RollbackPlan(
        target,
        snapshots=behind[::-1],
        changelogs=[each for each in changelog_ids(storage, layout) if each > number],
        tags=_tags_behind(handle, number),
        consumers=[
            each
            for each in read_consumers(storage, layout, handle.environment)
            if each.next_snapshot > number + 1
        ],
        branches=_branches_behind(handle, behind),
    )


def following(ids: Sequence[int], number: int) -> int:
    """Return the last of the consecutive numbers in ``ids`` that follow ``number``.

    Return ``number`` if ``number + 1`` is not in ``ids``.
    """
    there = {*ids}
    while number + 1 in there:
        number += 1
    return number


def _rest(handle: TableHandle, target: Origin, cut: StartedCut) -> RollbackPlan:
    """Return a plan for what an earlier attempt has not deleted yet.

    Commits on top of the target, made after that attempt, are kept.
    """
    storage, layout, number = handle.storage, handle.layout, target.snapshot.id
    ids = snapshot_ids(storage, layout)
    ours, newest = [target.snapshot], number
    while (since := read_snapshot_if_present(storage, layout, newest + 1)) is not None:
        if since.identity in cut.removed:
            break
        ours.append(since)
        newest += 1
    tags = [tag for tag in read_tags(storage, layout) if tag.snapshot.id > number]
    readers = read_consumers(storage, layout, handle.environment)
    return RollbackPlan(
        target,
        snapshots=[each for each in ids if each > newest][::-1],
        changelogs=[each for each in changelog_ids(storage, layout) if each > number],
        tags=[tag.name for tag in tags if tag.snapshot not in ours],
        consumers=[each for each in readers if each.next_snapshot > newest + 1],
        branches=(),
        newest=newest,
    )


def require_unneeded(handle: TableHandle, plan: RollbackPlan) -> None:
    """Raise InvalidRequestError if tags or branches need a snapshot that is to be deleted."""
    if (objection := objection_to(handle, plan)) is not None:
        raise InvalidRequestError(objection)


def objection_to(handle: TableHandle, plan: RollbackPlan) -> str | None:
    """Return the message of the error that refuses the rollback without ``force``.

    Return None if no tag or branch needs a snapshot that the rollback deletes.
    """
    number = plan.target.snapshot.id
    named = [name for name in plan.tags if not is_protection(name)]
    parts = [quoted(named, "tag", "tags")] if named else []
    if plan.branches:
        parts.append(quoted(plan.branches, "branch", "branches"))
    if not parts:
        return None
    return (
        f"{' and '.join(parts)} of {handle.uri} would be affected: this rollback deletes all "
        f"snapshots newer than {number}. Tags of these snapshots would be deleted, and a branch "
        "that began at one of them could no longer be fast-forwarded. Leave out as_latest=False "
        "(--cut-history) to keep history, or pass force=True (--force)"
    )


def quoted(names: Sequence[str], one: str, more: str) -> str:
    """Return names after their noun, such as ``tag 'a'`` or ``tags 'a', 'b'``."""
    return f"{one if len(names) == 1 else more} {', '.join(map(repr, names))}"


def _tags_behind(handle: TableHandle, number: int) -> list[str]:
    """Return the tags of snapshots newer than ``number``, newest first.

    These tags are deleted, because the numbers of their snapshots are reused.
    """
    tags = [tag for tag in read_tags(handle.storage, handle.layout) if tag.snapshot.id > number]
    return [tag.name for tag in sorted(tags, key=lambda tag: -tag.snapshot.id)]


def _branches_behind(handle: TableHandle, behind: Sequence[int]) -> list[str]:
    """Return the names of the branches that have one of ``behind``, the snapshots to delete."""
    storage, found = handle.storage, []
    for branch in branches(storage, handle.layout):
        layout = handle.layout.on_branch(branch.name)
        if layout == handle.layout:
            continue
        shared = sorted({*behind} & {*snapshot_ids(storage, layout)})
        first = shared[0] if shared else None
        if first is not None and read_snapshot_if_present(
            storage, layout, first
        ) == read_snapshot_if_present(storage, handle.layout, first):
            found.append(branch.name)
    return found
