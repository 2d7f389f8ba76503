# SPDX-License-Identifier: Apache-2.0
"""The mark ``branch/.unfinished-<name>`` hides a branch during its creation, deletion or renaming.

A creation writes the mark before the first file of the branch and removes it after the last. A
deletion also writes the mark first, with the snapshots whose files it removes. So a crash never
leaves an incomplete branch visible, and a repeated call finishes the work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lakeformat.errors import NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.tables.create_once import create_or_find
from lakeformat.tables.json_file import decode_json_file

__all__ = ["Creation", "Deletion", "Move", "Work", "clear", "mark", "read_mark"]


@dataclass(frozen=True, slots=True)
class Creation:
    """The creation of a branch, with the tag, snapshot and schema id of main at which it begins.

    ``tag`` is None without a tag, and ``snapshot`` is None for a branch that begins without rows.
    """

    tag: str | None
    snapshot: Snapshot | None
    schema_id: int

    def members(self) -> dict[str, Any]:
        """Return the content of the mark as a dict for JSON."""
        snapshot = None if self.snapshot is None else self.snapshot.members()
        return {"tag": self.tag, "snapshot": snapshot, "schemaId": self.schema_id}


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of a branch, with the snapshots whose files it removes.

    ``states`` are the oldest snapshot and the snapshots of tags. ``additions`` are all snapshots
    after the oldest. ``changelogs`` are the expired snapshots that are kept as changelogs.
    """

    states: Sequence[Snapshot]
    additions: Sequence[Snapshot]
    changelogs: Sequence[Snapshot]

    def members(self) -> dict[str, Any]:
        """Return the content of the mark as a dict for JSON."""
        return {
            "states": [each.members() for each in self.states],
            "additions": [each.members() for each in self.additions],
            "changelogs": [each.members() for each in self.changelogs],
        }


@dataclass(frozen=True, slots=True)
class Move:
    """The renaming of a branch, file by file.

    The new name is hidden until all files are copied. Then the old name is hidden until its files
    are deleted.
    """

    old: str
    new: str

    def members(self) -> dict[str, Any]:
        """Return the content of the mark as a dict for JSON."""
        return {"old": self.old, "new": self.new}


Work: TypeAlias = Creation | Deletion | Move
_KEYS = {Creation: "creation", Deletion: "deletion", Move: "move"}


def mark(handle: TableHandle, name: str, work: Work) -> bool:
    """Hide a branch by writing its mark; return False and change nothing if it is hidden
    already.
    """
    path = handle.layout.unfinished_branch(name)
    key = _KEYS[type(work)]
    # On storages with real directories, no other step creates this directory.
    handle.storage.make_directory(handle.layout.branches_directory)
    return create_or_find(handle.storage, path, json.dumps({key: work.members()}).encode())


def read_mark(handle: TableHandle, name: str) -> Work | None:
    """Return the unfinished creation, deletion or renaming of a branch; None without a mark.

    Raise CorruptTableError for a damaged mark.
    """
    path = handle.layout.unfinished_branch(name)
    try:
        content = handle.storage.read(path)
    except NotFoundError:
        return None
    return decode_json_file(
        content, handle.storage.uri(path), _from_members, Remedy.UNFINISHED_BRANCH
    )


def clear(handle: TableHandle, name: str) -> None:
    """Remove the mark of a branch, whose creation, deletion or renaming is complete or given up."""
    handle.storage.delete(handle.layout.unfinished_branch(name))


def _from_members(members: Mapping[str, Any]) -> Work:
    if "move" in members:
        return Move(members["move"]["old"], members["move"]["new"])
    if "creation" in members:
        made = members["creation"]
        snapshot = made["snapshot"]
        return Creation(
            made["tag"],
            None if snapshot is None else Snapshot.from_json(snapshot),
            made["schemaId"],
        )
    gone = members["deletion"]
    states, additions, changelogs = (
        tuple(Snapshot.from_json(each) for each in gone[key])
        for key in ("states", "additions", "changelogs")
    )
    return Deletion(states, additions, changelogs)
