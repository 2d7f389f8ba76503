# SPDX-License-Identifier: Apache-2.0
"""Finds out if the newest snapshots of a branch were lost: their files then look like orphans."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import unfinished_branches
from lakeformat.paimon.metadata.hints import numbered_snapshots

__all__ = ["lost_snapshots"]


def lost_snapshots(handle: TableHandle, known: Mapping[str, int]) -> str | None:
    """Return a text if the newest snapshots may be lost; then no orphan file may be deleted.

    Return None if LATEST of no branch is above its newest snapshot. ``known`` has the branches to
    check, each with the number of an existing snapshot, or 0. Unfinished branches are left out.
    """
    storage, layout = handle.storage, handle.layout
    for branch, number in known.items():
        lost = numbered_snapshots(storage, layout.on_branch(branch)).lost(number)
        if lost is not None and branch not in unfinished_branches(storage, layout):
            return (
                f"{lost}. Their files look like orphans, so no orphan file is deleted: restore the "
                "lost files from a backup, unless a commit was made since the loss. If they cannot "
                "be restored, or none was lost, for example because a rollback removed them while "
                f"another program committed, run `lake repair-hints {handle.argument}`"
            )
    return None
