"""The outcome of repairing a catalog."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lakeformat.tables.report import Report

__all__ = ["RepairReport"]


@dataclass(frozen=True, slots=True)
class RepairReport(Report):
    """Table names, by the repair each needed; all empty if nothing was wrong."""

    registered: tuple[str, ...] = ()
    """They had files and were not listed: now they are listed."""
    moved: tuple[str, ...] = ()
    """Their rename was interrupted: now their files are at the place of their name."""
    dropped: tuple[str, ...] = ()
    """Their drop was interrupted: now their files are deleted. Some have only a hidden name."""
    synchronized: tuple[str, ...] = ()
    """Their options in the SQL database differed from their schema: now they are equal."""
    without_files: tuple[str, ...] = ()
    """They are listed, but have no files: restore the files, or drop the table."""
    damaged: tuple[str, ...] = ()
    """Not repaired. Either a schema is missing or unreadable: restore it. Or files of another table
    are where a rename moves theirs: delete those. Or the name, or the note about the table, is not
    a valid name.
    """

    def to_dict(self) -> dict[str, list[str]]:
        """Return the report as plain values."""
        return {field.name: [*getattr(self, field.name)] for field in fields(self)}

    def __add__(self, other: RepairReport) -> RepairReport:
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return RepairReport(**both)
