# SPDX-License-Identifier: Apache-2.0
"""The outcome of repairing a catalog."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lakeformat.tables.report import Report

__all__ = ["RepairReport"]


@dataclass(frozen=True, slots=True)
class RepairReport(Report):
    """Table names, by the repair each needed; all empty if nothing was wrong."""

    registered: tuple[str, ...] = ()
    """Tables that had files, but were not listed: now they are listed."""
    moved: tuple[str, ...] = ()
    """Tables whose rename was interrupted: now their files are at the place of the new name."""
    dropped: tuple[str, ...] = ()
    """Tables whose drop was interrupted: now their files are deleted. Some have a hidden name."""
    synchronized: tuple[str, ...] = ()
    """Tables whose options in the SQL database differed from their schema: now they are equal."""
    without_files: tuple[str, ...] = ()
    """Tables that are listed, but have no files: restore the files, or drop the table."""
    damaged: tuple[str, ...] = ()
    """Tables that were not repaired, for one of three reasons. A schema is missing or unreadable:
    restore it. Files of another table are at the place that a rename moves files to: delete them.
    The name of the table, or the old name that the database noted for a rename, is not valid.
    """

    def to_dict(self) -> dict[str, list[str]]:
        """Return the report as plain values."""
        return {field.name: [*getattr(self, field.name)] for field in fields(self)}

    def __add__(self, other: RepairReport) -> RepairReport:
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return RepairReport(**both)
