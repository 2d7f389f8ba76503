# SPDX-License-Identifier: Apache-2.0
"""The description of a file to delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakeformat.storage import Storage
from lakeformat.types.count_text import counted

__all__ = ["FileClass", "Removal"]


class FileClass(StrEnum):
    """The kind of a file of a table."""

    DATA = "data"
    """A data file, or one of its extra files, such as a file index."""
    DELETES = "delete file"
    """A delete file of an Iceberg table."""
    CHANGELOG = "changelog"
    INDEX = "index"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    INDEX_MANIFEST = "index manifest"
    STATISTICS = "statistics"
    METADATA = "table metadata"
    """A metadata file of an Iceberg table."""
    SNAPSHOT = "snapshot"
    """The file of a snapshot, tag or long-lived changelog, which refers to other files."""
    DIRECTORY = "directory"
    """An empty directory."""
    OTHER = "other"
    """A temporary file, or a file of unknown kind."""

    def counted(self, number: int) -> str:
        """Return a number of files of this kind as text, such as ``2 delete files``."""
        return counted(number, *_NOUNS.get(self, (f"{self} file",)))


_NOUNS: Mapping[FileClass, tuple[str, ...]] = {
    FileClass.DELETES: ("delete file",),
    FileClass.DIRECTORY: ("empty directory", "empty directories"),
    FileClass.INDEX_MANIFEST: ("index manifest",),
    FileClass.MANIFEST: ("manifest",),
    FileClass.MANIFEST_LIST: ("manifest list",),
}
"""The names of kinds in reports: the singular, and an irregular plural. Any other kind has the name
``<kind> file``.
"""


@dataclass(frozen=True, slots=True)
class Removal:
    """A file to delete, its kind, and the reason."""

    storage: Storage = field(repr=False)
    """The storage of the file. An external path can have another storage than the table."""
    path: str
    kind: FileClass
    reason: str
    size: int | None = None
    """The size in bytes; None if the metadata does not contain it."""

    @property
    def uri(self) -> str:
        """The URI of the file."""
        return self.storage.uri(self.path)

    def to_dict(self) -> dict[str, Any]:
        """Return the URI (key ``path``), kind, size and reason as a dict, ready for JSON."""
        return {
            "path": self.uri,
            "kind": str(self.kind),
            "size": self.size,
            "reason": self.reason,
        }
