"""What repairing a catalog did."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["RepairReport"]


@dataclass(frozen=True, slots=True)
class RepairReport:
    """Table names, by what was found; all empty when nothing was wrong."""

    registered: tuple[str, ...] = ()
    """Had files and were not listed: they are listed now."""
    moved: tuple[str, ...] = ()
    """Were renamed half-way: their files are where their name says now."""
    dropped: tuple[str, ...] = ()
    """Were dropped half-way: their files are gone now. Some have a hidden name only."""
    synchronized: tuple[str, ...] = ()
    """Their options in the SQL database differed from their schema and follow it now."""
    without_files: tuple[str, ...] = ()
    """Are listed, but nothing is there: restore their files, or drop them."""
    damaged: tuple[str, ...] = ()
    """Stay as they are: a schema is missing or unreadable, which is to be restored, others' files
    are where a rename brings theirs, which are to be removed, or their name, or what is noted about
    them, is one that no table or database may have."""

    def to_dict(self) -> dict[str, list[str]]:
        """The report as plain values."""
        return {field.name: [*getattr(self, field.name)] for field in fields(self)}

    def __add__(self, other: RepairReport) -> RepairReport:
        both = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return RepairReport(**both)
