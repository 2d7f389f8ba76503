# SPDX-License-Identifier: Apache-2.0
"""Finds out if a rollback deleted the snapshot from which a change was computed.

The number of a deleted snapshot is used again. Only the identity distinguishes the two snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present

__all__ = ["is_replaced", "rolled_back_base"]


def is_replaced(handle: TableHandle, head: Snapshot, number: int, identity: str | None) -> bool:
    """Return True if the snapshot ``number`` has another identity than ``identity``.

    Return False if this snapshot does not exist, or if ``identity`` is None, which means unknown.
    """
    if identity is None:
        return False
    found: Snapshot | None = head
    if head.id != number:
        found = read_snapshot_if_present(handle.storage, handle.layout, number)
    return found is not None and found.identity != identity


def rolled_back_base(
    handle: TableHandle, head: Snapshot, messages: Iterable[CommitMessage]
) -> int | None:
    """Return the number of a base snapshot of the messages that a rollback has deleted.

    Return None if none is found. Messages of other branches are ignored: their numbers
    belong to other snapshots.
    """
    bases = {
        (each.base_snapshot, each.base_identity)
        for each in messages
        if each.base_snapshot is not None and each.branch == handle.layout.branch
    }
    for number, identity in bases:
        if head.id < number or is_replaced(handle, head, number, identity):
            return number
    return None
