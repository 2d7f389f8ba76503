# SPDX-License-Identifier: Apache-2.0
"""Finds out if the newest snapshots of a branch were lost: their files then look like orphans."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import unfinished_branches
from lakeformat.paimon.metadata.hints import numbered_snapshots

__all__ = ["lost_snapshots"]


def lost_snapshots(handle: TableHandle, known: Mapping[str, int]) -> str | None:
    """Return a message if the newest snapshots may be lost; then no orphan file may be deleted.

    Return None if no branch has a hint LATEST above its newest snapshot. ``known`` has the branches
    to check, each with the number of an existing snapshot, or 0. Unfinished branches are left out.
    """
    storage, layout = handle.storage, handle.layout
    for branch, number in known.items():
        lost = numbered_snapshots(storage, layout.on_branch(branch)).lost(number)
        if lost is not None and branch not in unfinished_branches(storage, layout):
            return (
                f"{lost}. The files of lost snapshots look like orphans, so no orphan file is "
                "deleted. If snapshots were lost and no commit was made since then, restore them "
                "from a backup. If they cannot be restored, or if none was lost, run `lake "
                f"repair-hints {handle.argument}`. None was lost, for example, if a rollback "
                "removed these snapshots while another program committed"
            )
    return None
