# SPDX-License-Identifier: Apache-2.0
"""One file to remove, with its kind and the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakeformat.storage import Storage

__all__ = ["FileClass", "Removal"]


class FileClass(StrEnum):
    """The role of a file in its table."""

    DATA = "data"
    """A data file, or an extra file beside it."""
    DELETES = "delete file"
    """A file of deleted rows, in an Iceberg table."""
    CHANGELOG = "changelog"
    """A changelog file."""
    INDEX = "index"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    INDEX_MANIFEST = "index manifest"
    STATISTICS = "statistics"
    METADATA = "table metadata"
    """A file of table metadata, in an Iceberg table."""
    SNAPSHOT = "snapshot"
    """The file of a snapshot, tag or long-lived changelog, which makes other files reachable."""
    DIRECTORY = "directory"
    """An empty directory."""
    OTHER = "other"
    """Temporary files, and files with unknown names."""


@dataclass(frozen=True, slots=True)
class Removal:
    """One file to remove, with its kind and the reason."""

    storage: Storage = field(repr=False)
    """The table's storage, except for external files."""
    path: str
    kind: FileClass
    reason: str
    size: int | None = None
    """Size in bytes, if metadata knows it."""

    @property
    def uri(self) -> str:
        """The URI of the file."""
        return self.storage.uri(self.path)

    def to_dict(self) -> dict[str, Any]:
        """Return the removal as plain values."""
        return {
            "path": self.uri,
            "kind": str(self.kind),
            "size": self.size,
            "reason": self.reason,
        }
