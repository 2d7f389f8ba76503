# SPDX-License-Identifier: Apache-2.0
"""Texts of conflict errors: the two commits and the files in conflict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.partition import partition_path

__all__ = ["Committer", "described", "named", "place"]

_SHOWN_FILES = 10


@dataclass(frozen=True, slots=True)
class Committer:
    """Names a commit in messages: its kind, its user, and the snapshot ``planned_on`` if known."""

    handle: TableHandle
    kind: CommitKind
    user: str
    planned_on: int | None = None

    def __str__(self) -> str:
        who = f"this {self.kind} of user {self.user!r} on {self.handle.uri}"
        if self.planned_on is None:
            return who
        base = f"snapshot {self.planned_on}" if self.planned_on else "the empty table"
        return f"{who}, planned on {base},"

    def against(self, other: Snapshot | None) -> str:
        """Return "<this commit> conflicts with <other>"; ``other=None`` stands for a table without
        snapshots.
        """
        found = "the table, which has no snapshot yet" if other is None else named(other)
        return f"{self} conflicts with {found}"


def named(snapshot: Snapshot) -> str:
    """Return a snapshot's id, kind and user for a message."""
    return f"snapshot {snapshot.id} ({snapshot.commit_kind} of user {snapshot.commit_user!r})"


def described(handle: TableHandle, files: ManifestColumns) -> str:
    """Return the names of up to ten files for a message, with partition and bucket of the first."""
    shown = files.entries(np.arange(min(len(files), _SHOWN_FILES)))
    where = f"{place(handle, shown[0].partition)}, bucket {shown[0].bucket}"
    names = ", ".join(entry.file.file_name for entry in shown)
    more = len(files) - len(shown)
    return f"{names} and {more} more ({where})" if more else f"{names} ({where})"


def place(handle: TableHandle, partition: bytes) -> str:
    """Return "partition <directory>" for a message, or "the table" if it has no partitions."""
    path = partition_path(handle.schema, partition)
    return f"partition {path}" if path else "the table"
