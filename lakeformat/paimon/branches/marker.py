"""``branch/.unfinished-<name>``: a branch that is being made or removed, which nobody may see.

It is written before the first file of a branch and goes after the last; when a branch is deleted
it comes first, too, and remembers what has to be removed. So a crash leaves no half branch, and
whoever repeats the work finishes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lakeformat.errors import NotFoundError, UnavailableError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.json_file import decode_json_file
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["Creation", "Deletion", "Move", "Work", "clear", "mark", "read_mark"]


@dataclass(frozen=True, slots=True)
class Creation:
    """A branch that is being made, and of what."""

    tag: str | None
    snapshot: Snapshot | None
    schema_id: int

    def members(self) -> dict[str, Any]:
        """Its content as JSON has it."""
        snapshot = None if self.snapshot is None else self.snapshot.members()
        return {"tag": self.tag, "snapshot": snapshot, "schemaId": self.schema_id}


@dataclass(frozen=True, slots=True)
class Deletion:
    """A branch that is being removed, and what it led to."""

    states: Sequence[Snapshot]
    additions: Sequence[Snapshot]
    changelogs: Sequence[Snapshot]

    def members(self) -> dict[str, Any]:
        """Its content as JSON has it."""
        return {
            "states": [each.members() for each in self.states],
            "additions": [each.members() for each in self.additions],
            "changelogs": [each.members() for each in self.changelogs],
        }


@dataclass(frozen=True, slots=True)
class Move:
    """A branch that is getting another name, file by file; both names are hidden in turn."""

    old: str
    new: str

    def members(self) -> dict[str, Any]:
        """Its content as JSON has it."""
        return {"old": self.old, "new": self.new}


Work: TypeAlias = Creation | Deletion | Move
_KEYS = {Creation: "creation", Deletion: "deletion", Move: "move"}


def mark(handle: TableHandle, name: str, work: Work) -> bool:
    """Hide a branch; False, and nothing changed, if it is hidden already."""
    path = handle.layout.unfinished_branch(name)
    key = _KEYS[type(work)]
    # Nothing else makes the directory of branches where directories have to be made.
    handle.storage.make_directory(handle.layout.branches_directory)
    try:
        return handle.storage.create(path, json.dumps({key: work.members()}).encode())
    except UnavailableError:
        if read_mark(handle, name) != work:
            raise
        return True


def read_mark(handle: TableHandle, name: str) -> Work | None:
    """What is being done to a branch; None where nothing is."""
    path = handle.layout.unfinished_branch(name)
    try:
        content = handle.storage.read(path)
    except NotFoundError:
        return None
    return decode_json_file(content, handle.storage.uri(path), _from_members)


def clear(handle: TableHandle, name: str) -> None:
    """The work is done: a branch that is there is seen from now on."""
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
