# SPDX-License-Identifier: Apache-2.0
"""The report of a repair of a catalog."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lakeformat.tables.report import Report

__all__ = ["RepairReport"]


@dataclass(frozen=True, slots=True)
class RepairReport(Report):
    """The tables and databases that a repair changed or found damaged; all fields are empty if no
    repair was needed.
    """

    registered: tuple[str, ...] = ()
    """Tables and databases that had files but were not listed; they are listed now."""
    moved: tuple[str, ...] = ()
    """Tables whose rename was interrupted; their files are now in the directory of the new name."""
    dropped: tuple[str, ...] = ()
    """Tables whose drop was interrupted; their files are deleted now. A table that was already
    renamed to a hidden directory is listed under the name of that directory.
    """
    synchronized: tuple[str, ...] = ()
    """Tables whose options in the SQL database differed from their newest schema; they are equal
    now.
    """
    without_files: tuple[str, ...] = ()
    """Listed tables that have no files: restore the files, or drop the table."""
    damaged: tuple[str, ...] = ()
    """Tables and databases that were not repaired, for example for one of these reasons.

    - A schema is missing or unreadable: restore it.
    - The target directory of an interrupted rename has files of another table: delete these files.
    - The name of the table or database, or the old name that a rename recorded, is not valid.
    """

    def to_dict(self) -> dict[str, list[str]]:
        """Return the names in each field, ready for JSON."""
        return {field.name: [*getattr(self, field.name)] for field in fields(self)}

    def __add__(self, other: RepairReport) -> RepairReport:
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return RepairReport(**both)
