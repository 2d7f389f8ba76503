# SPDX-License-Identifier: Apache-2.0
"""The methods of ``table.branches``: list, create, rename, delete and fast-forward branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.iceberg.choice import snapshot_text
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import BRANCH, Reference
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import set_reference
from lakeformat.iceberg.references.branch_records import (
    delete_left_records,
    forget_branch,
    renamed_records,
)
from lakeformat.iceberg.references.change import (
    Plan,
    Retention,
    create_reference,
    publish,
    rename_reference,
)
from lakeformat.iceberg.references.delete import delete_references
from lakeformat.iceberg.references.origin import Origin, find_reference
from lakeformat.tables.position import MAIN_BRANCH, AnyPosition
from lakeformat.tables.reference_reports import BranchReport, DeletionReport, FastForwardReport
from lakeformat.tables.retain import Retain
from lakeformat.tables.table import offer_arguments
from lakeformat.types.count_text import counted

__all__ = ["BranchInfo", "TableBranches"]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch in a listing."""

    name: str
    snapshots: int
    """The number of snapshots of the branch that have not expired, including those shared with
    main.
    """
    first_snapshot: int
    last_snapshot: int
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "branch_name": self.name,
            "snapshot_count": self.snapshots,
            "first_snapshot_id": self.first_snapshot,
            "last_snapshot_id": self.last_snapshot,
            "min_snapshots_to_keep": self.min_snapshots_to_keep,
            "max_snapshot_age_ms": self.max_snapshot_age_ms,
            "max_ref_age_ms": self.max_ref_age_ms,
        }


@offer_arguments
@dataclass(frozen=True, slots=True)
class TableBranches:
    """The branches of one table, except main."""

    _handle: TableHandle

    def list(self) -> Sequence[BranchInfo]:
        """Return all branches except main, sorted by name."""
        metadata = self._handle.load().metadata
        branches = [
            each
            for each in metadata.references.values()
            if each.type == BRANCH and each.name != MAIN_BRANCH
        ]
        return [_info(metadata, each) for each in sorted(branches, key=lambda each: each.name)]

    def create(
        self,
        name: str,
        *,
        tag: str | None = None,
        snapshot: AnyPosition | None = None,
        retain: Retain | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age: Retain | None = None,
        exist_ok: bool = False,
        dry_run: bool = False,
    ) -> BranchReport:
        """Create a branch at a tag or snapshot; by default at the newest snapshot.

        An expiry keeps ``min_snapshots_to_keep`` snapshots of the branch, and those younger than
        ``max_snapshot_age``. It removes the branch when its newest snapshot is older than
        ``retain``. By default the table properties decide. Raise ``AlreadyExistsError`` if the name
        exists; with ``exist_ok``, only if a tag has it. Raise ``NotFoundError`` if the tag or
        snapshot does not exist.
        """
        origin = Origin(self._handle.branch, snapshot, tag)
        kept = Retention(retain, min_snapshots_to_keep, max_snapshot_age)
        plan = create_reference(self._handle, BRANCH, name, origin, kept, exist_ok=exist_ok)
        if not dry_run:
            delete_left_records(self._handle, name)
        return self._changed(plan, dry_run=dry_run)

    def rename(self, name: str, new_name: str, *, dry_run: bool = False) -> BranchReport:
        """Rename a branch.

        Its consumers, its staged results, and its records of streams and runs move to the new name.
        Raise ``NotFoundError`` if ``name`` does not exist, ``AlreadyExistsError`` if ``new_name``
        exists, and ``InvalidRequestError`` for main.
        """
        plan = rename_reference(self._handle, BRANCH, name, new_name)
        checked = self._changed(plan, dry_run=True)  # refuses a name before it moves records
        if dry_run:
            return checked
        with renamed_records(self._handle, name, new_name):
            return self._changed(plan, dry_run=False)

    def delete(
        self,
        name: str,
        *,
        dry_run: bool = False,
        on_progress: Callable[..., object] | None = None,
    ) -> DeletionReport:
        """Delete a branch; raise ``NotFoundError`` if it does not exist, and
        ``InvalidRequestError`` for main.

        Its consumers, its staged results, and its records of streams and runs are deleted. The next
        expiry removes the snapshots and files that only this branch needed.
        ``on_progress`` has no effect, because no data file is deleted.
        """
        report = delete_references(self._handle, BRANCH, [name], missing_ok=False, dry_run=dry_run)
        if not dry_run:
            forget_branch(self._handle, name)
        return report

    def fast_forward(self, name: str, *, dry_run: bool = False) -> FastForwardReport:
        """Move main to the newest snapshot of a branch.

        Raise ``CommitConflictError`` if the newest snapshot of main is not in the history of the
        branch: main never loses a commit. Raise ``NotFoundError`` if the branch does not exist, and
        ``InvalidRequestError`` for main itself.
        """
        if name == MAIN_BRANCH:
            raise InvalidRequestError("'main' cannot be moved to itself: name another branch")
        gained: list[int] = []

        def change(loaded: LoadedMetadata) -> TableMetadata | None:
            gained[:] = _ahead_of_main(loaded, name)
            if not gained:
                return None
            new = Reference(MAIN_BRANCH, gained[-1], BRANCH)
            old = loaded.metadata.references.get(MAIN_BRANCH, new)
            moved = replace(old, snapshot_id=gained[-1])
            return set_reference(loaded.metadata, moved, self._handle.environment.now_millis())

        if dry_run:
            change(self._handle.load())
        else:
            commit_metadata(self._handle, change)
        verb = "would receive" if dry_run else "received"
        return FastForwardReport(
            table=self._handle.uri,
            branch=name,
            snapshots=tuple(gained),
            schemas=(),
            tags=(),
            dry_run=dry_run,
            reason=f"main {verb} {counted(len(gained), 'snapshot')} of branch {name!r}"
            if gained
            else f"main already has every snapshot of branch {name!r}",
        )

    def _changed(self, plan: Plan, *, dry_run: bool) -> BranchReport:
        done = publish(self._handle, plan, dry_run=dry_run)
        branch = done.reference
        would = "would be " if dry_run and done.action != "kept" else ""
        return BranchReport(
            table=self._handle.uri,
            branch=branch.name,
            action=done.action,
            snapshot_id=branch.snapshot_id,
            reason=f"branch {branch.name!r} {would}{done.action} at {snapshot_text(done.snapshot)}",
            dry_run=dry_run,
        )


def _ahead_of_main(loaded: LoadedMetadata, name: str) -> list[int]:
    """Return the ids of the snapshots of a branch that main does not have, oldest first.

    Raise ``CommitConflictError`` if the newest snapshot of main is not in the branch's history.
    """
    metadata = loaded.metadata
    head = find_reference(metadata, name, BRANCH, loaded.places.uri).snapshot_id
    ahead: list[int] = []
    for snapshot in metadata.ancestry(head):
        if snapshot.snapshot_id == metadata.current_snapshot_id:
            return ahead[::-1]
        ahead.append(snapshot.snapshot_id)
    if metadata.current_snapshot_id is None:
        return ahead[::-1]
    raise CommitConflictError(
        f"main of {loaded.places.uri} is at snapshot {metadata.current_snapshot_id}, which is not "
        f"in the history of branch {name!r}: either main has commits since the branch began, which "
        "a fast-forward would lose, or an older snapshot of the branch has expired. Nothing was "
        "changed. "
        "cherry_pick(snapshot) publishes one snapshot of the branch on main, if it only adds files"
    )


def _info(metadata: TableMetadata, branch: Reference) -> BranchInfo:
    ids = [each.snapshot_id for each in metadata.ancestry(branch.snapshot_id)]
    return BranchInfo(
        branch.name,
        len(ids),
        ids[-1],
        ids[0],
        branch.min_snapshots_to_keep,
        branch.max_snapshot_age_ms,
        branch.max_ref_age_ms,
    )
