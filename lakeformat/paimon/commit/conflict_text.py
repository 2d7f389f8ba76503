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
    """Describes a commit; ``planned_on`` is the snapshot it was prepared on, if known."""

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
        """Return a clause that names this commit and the snapshot ``other``; the reason follows
        after a colon.
        """
        found = "the table, which has no snapshot yet" if other is None else named(other)
        return f"{self} conflicts with {found}"


def named(snapshot: Snapshot) -> str:
    """Describe a snapshot with its kind and user."""
    return f"snapshot {snapshot.id} ({snapshot.commit_kind} of user {snapshot.commit_user!r})"


def described(handle: TableHandle, files: ManifestColumns) -> str:
    """Describe the first of the files and their bucket."""
    shown = files.entries(np.arange(min(len(files), _SHOWN_FILES)))
    where = f"{place(handle, shown[0].partition)}, bucket {shown[0].bucket}"
    names = ", ".join(entry.file.file_name for entry in shown)
    more = len(files) - len(shown)
    return f"{names} and {more} more ({where})" if more else f"{names} ({where})"


def place(handle: TableHandle, partition: bytes) -> str:
    """Return the name of a partition for a sentence, or "the table" if the table is
    unpartitioned.
    """
    path = partition_path(handle.schema, partition)
    return f"partition {path}" if path else "the table"
