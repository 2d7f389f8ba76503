"""What was copied or taken over, for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["CloneReport", "MigrateReport", "MigratedFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReport:
    """The outcome of cloning one table, or what it would be."""

    source: str
    target: str
    what: str
    """The state that was copied: ``everything``, or a snapshot by its number."""
    dry_run: bool
    files: int
    """Data, index and metadata files of the clone."""
    copied: int
    """Those that were not there from an earlier try."""
    bytes: int
    snapshot_ids: tuple[int, ...]
    """Of the main branch of the clone."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigratedFile:
    """One file of a directory that becomes a table, and how."""

    file: str
    partition: str
    how: str
    """``registered`` where it lies, ``copied`` as it is, or ``converted`` into a new file."""
    reason: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateReport:
    """The outcome of making a table of a directory, or what it would be."""

    source: str
    table: str
    dry_run: bool
    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...]
    files: tuple[MigratedFile, ...]
    skipped: tuple[str, ...]
    """Hidden files, which no table takes."""
    rows: int
    snapshot_id: int | None
    replayed: bool
    reason: str
    """One sentence for the log: what happened, or why nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
