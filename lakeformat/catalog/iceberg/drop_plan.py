# SPDX-License-Identifier: Apache-2.0
"""The plan of a drop of an Iceberg table."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["IcebergDropPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergDropPlan(Report):
    """The planned effect of a drop; nothing is changed yet."""

    table: str
    location: str
    purge: bool
    """True if the files are deleted, too."""
    files: int = 0
    """Files that the metadata names and a purge deletes."""
    bytes: int = 0
    """Their size, as far as metadata knows it."""
    outside: int = 0
    """Files outside of the table's directory and of allowed ones, which are kept."""

    @property
    def sentence(self) -> str:
        """The plan, for people."""
        where = f"table {self.table} at {self.location} is removed from the catalog"
        if not self.purge:
            return f"{where}; its files are kept"
        kept = f"; {counted(self.outside, 'file')} outside of it are kept" if self.outside else ""
        return f"{where}; {counted(self.files, 'file')} of {size(self.bytes)} are deleted{kept}"
