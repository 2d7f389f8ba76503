"""One file that goes, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakeformat.storage import Storage

__all__ = ["FileClass", "Removal"]


class FileClass(StrEnum):
    """What a file is to its table."""

    DATA = "data"
    """A data file, or one that accompanies it."""
    CHANGELOG = "changelog"
    """A file of changes."""
    INDEX = "index"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    INDEX_MANIFEST = "index manifest"
    STATISTICS = "statistics"
    SNAPSHOT = "snapshot"
    """The file of a snapshot, a tag or a long-lived changelog: what makes the others reachable."""
    DIRECTORY = "directory"
    """One that has become empty."""
    OTHER = "other"
    """Temporary files, and whatever nothing of the format is called."""


@dataclass(frozen=True, slots=True)
class Removal:
    """One file that goes, and why."""

    storage: Storage = field(repr=False)
    """The table's, but for files at external paths."""
    path: str
    kind: FileClass
    reason: str
    size: int | None = None
    """Bytes, where metadata says it."""

    @property
    def uri(self) -> str:
        """Where the file is, for people and other programs."""
        return self.storage.uri(self.path)

    def to_dict(self) -> dict[str, Any]:
        """The removal as plain values."""
        return {
            "path": self.uri,
            "kind": str(self.kind),
            "size": self.size,
            "reason": self.reason,
        }
