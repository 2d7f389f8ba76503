# SPDX-License-Identifier: Apache-2.0
"""The plan of dropping an Iceberg table."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["IcebergDropPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergDropPlan(Report):
    """The planned effect of dropping one table."""

    table: str
    location: str
    """The URI of the table; "" if its metadata cannot be read."""
    change_store: str | None = None
    """The change store of a Mixed table, which is dropped, too; None for an Iceberg table."""
    purge: bool
    """True if the drop also deletes the files of the table."""
    files: int = 0
    """The number of files that the drop deletes."""
    bytes: int = 0
    """The total size in bytes of the files that the drop deletes; a file of unknown size counts as
    0.
    """
    unknown_sizes: int = 0
    """The number of files of unknown size, such as manifest lists: no metadata has their sizes."""
    outside: int = 0
    """The number of files that a purge keeps, because they are outside of the directories in which
    it deletes.
    """

    is_whole_directory: bool = False
    """True if the drop also deletes all other files in the directory of the table, as in a catalog
    of directories.
    """

    @property
    def sentence(self) -> str:
        """The plan in one sentence."""
        pair = f" and its change store {self.change_store}" if self.change_store else ""
        its, it = ("their", "them") if pair else ("its", "it")
        at = f" at {self.location}" if self.location else ""
        where = f"table {self.table}{at}{pair} would be removed from the catalog"
        if not self.purge:
            return f"{where}; {its} files would be kept"
        kept = f"; kept: {counted(self.outside, 'file')} outside of {it}" if self.outside else ""
        files = f"{counted(self.files, 'file')} of {self._size} would be deleted"
        if self.is_whole_directory:
            files += f", with all other files in {its} {'directories' if pair else 'directory'}"
        return f"{where}; {files}{kept}"

    @property
    def _size(self) -> str:
        if not self.unknown_sizes:
            return size(self.bytes)
        return f"at least {size(self.bytes)}" if self.bytes else "unknown size"
