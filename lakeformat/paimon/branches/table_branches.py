# SPDX-License-Identifier: Apache-2.0
"""``table.branches``: manages the branches of a table, and fast-forwards main to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.branches.create import create, refuse_inside_branch
from lakeformat.paimon.branches.delete import delete
from lakeformat.paimon.branches.fast_forward import fast_forward
from lakeformat.paimon.branches.rename import rename
from lakeformat.paimon.deletion import OnRemoval
from lakeformat.paimon.deletion.parallel import in_parallel
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import Branch, branches
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.metadata.tag import tag_names
from lakeformat.paimon.tags.source import find_origin
from lakeformat.tables.moment import iso_text
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.reference_reports import BranchReport, DeletionReport, FastForwardReport
from lakeformat.tables.table import offer_arguments

__all__ = ["BranchInfo", "TableBranches"]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """The name, creation time, snapshots and number of tags of one branch."""

    name: str
    create_millis: int
    snapshots: int
    """The number of snapshots in the branch.

    If the branch began at a snapshot of main, the branch's copy of this snapshot is included.
    """
    first_snapshot: int | None
    last_snapshot: int | None
    tags: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "branch_name": self.name,
            "create_time": iso_text(self.create_millis),
            "snapshot_count": self.snapshots,
            "first_snapshot_id": self.first_snapshot,
            "last_snapshot_id": self.last_snapshot,
            "tag_count": self.tags,
        }


@offer_arguments
@dataclass(frozen=True, slots=True)
class TableBranches:
    """The branches of one table, without main."""

    _handle: TableHandle

    def list(self) -> Sequence[BranchInfo]:
        """Return all branches except main, sorted by name."""
        handle = self._handle
        found = branches(handle.storage, handle.layout, handle.options.file_operation_threads)
        return in_parallel(handle, partial(_info, handle), found)

    def create(
        self,
        name: str,
        *,
        tag: str | None = None,
        snapshot: AnyPosition | None = None,
        exist_ok: bool = False,
        dry_run: bool = False,
    ) -> BranchReport:
        """Create a branch from a tag or snapshot of main, or without rows if neither is given.

        Raise NotFoundError if the tag or snapshot does not exist. Raise AlreadyExistsError if the
        branch exists; with ``exist_ok`` it is kept and reported. Use a tag if other engines expire
        snapshots of this table. These engines keep the files of a branch only while main has a tag
        of the branch's first snapshot.
        """
        refuse_inside_branch(self._handle, "created")
        origin = None
        if tag is not None or snapshot is not None:
            origin = find_origin(self._handle, snapshot=snapshot, tag=tag)
        return create(self._handle, name, origin, exist_ok=exist_ok, dry_run=dry_run)

    def rename(self, name: str, new_name: str, *, dry_run: bool = False) -> BranchReport:
        """Rename a branch; a program that has it open under the old name fails at its next commit.

        Raise NotFoundError if the branch does not exist, AlreadyExistsError if the new name exists,
        and InvalidRequestError if main or another branch reads the rows of this branch.
        """
        return rename(self._handle, name, new_name, dry_run=dry_run)

    @renamed_argument("tell", "on_progress")
    def delete(
        self, name: str, *, dry_run: bool = False, on_progress: OnRemoval | None = None
    ) -> DeletionReport:
        """Delete a branch and the files that only it needs.

        ``on_progress`` is called with each file that is deleted, or that a dry run would delete,
        and the reason. After an interruption, repeat the call to delete the remaining files. Raise
        NotFoundError if the branch does not exist, and InvalidRequestError if main or another
        branch reads the rows of this branch.
        """
        return delete(self._handle, name, dry_run=dry_run, on_progress=on_progress)

    def fast_forward(self, name: str, *, dry_run: bool = False) -> FastForwardReport:
        """Publish the snapshots, schemas and tags of a branch on main.

        Raise NotFoundError if the branch does not exist. Raise InvalidRequestError if main has
        commits that the branch lacks, because these commits would be lost. Raise it also if the
        branch has no snapshot, if a snapshot that main needs has expired on the branch, or if main
        has another schema with the same id or another snapshot for the same tag.
        """
        return fast_forward(self._handle, name, dry_run=dry_run)


def _info(handle: TableHandle, branch: Branch) -> BranchInfo:
    storage, layout = handle.storage, handle.layout.on_branch(branch.name)
    ids = snapshot_ids(storage, layout)
    return BranchInfo(
        name=branch.name,
        create_millis=branch.create_millis,
        snapshots=len(ids),
        first_snapshot=ids[0] if ids else None,
        last_snapshot=ids[-1] if ids else None,
        tags=len(tag_names(storage, layout)),
    )
