"""What was found of files nothing leads to, and what became of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.paimon.read.time_travel import moment_text

__all__ = ["OrphanFile", "OrphanReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """A file nothing leads to."""

    path: str
    """Its whole address."""
    kind: str
    """``data``, ``changelog``, ``index``, ``manifest`` and the like; ``other`` is temporary."""
    size: int
    modified_millis: int
    newest_snapshot: int | None
    """Of the main branch, the newest of those still there when the file was last changed."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """The file as plain values."""
        return {**asdict(self), "modified": moment_text(self.modified_millis)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanReport:
    """The outcome of one look for files nothing leads to."""

    table: str
    dry_run: bool
    older_than: str
    """Files changed then or later stayed."""
    older_than_reason: str
    override: str | None
    """The rule about age that was set aside, if one was."""
    looked_through: str
    """What was read to know which files are needed."""
    scanned_files: int
    scanned_bytes: int
    orphan_files: int
    """Nothing leads to them, and they are old enough."""
    orphan_bytes: int
    removed_files: int
    removed_bytes: int
    removed_directories: int
    failures: int
    """Files that would not go; the next run removes them."""
    failed: tuple[str, ...]
    """The first of those, each with why."""
    young_files: int
    """Nothing leads to them, and they are not old enough."""
    young_bytes: int
    kept_by_commit: int | None
    """The newest snapshot, if files older than the usual age are kept because of its time."""
    writing_files: int
    """Old, but their writer has made another file since: it may be at work still."""
    unknown_files: int
    """Old files under names that no writer gives, or of unknown age: they stay."""
    external_paths_left_out: tuple[str, ...]
    """Outside of the table, and looked at only if asked for."""
    objection: str | None
    """Why a removal would be refused, if it would; only a dry run comes so far then."""
    files: tuple[OrphanFile, ...]
    """The first of the orphans; ``on_progress`` is called with each of them."""
    files_left_out: int
    """How many more there are."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "files": [file.to_dict() for file in self.files]}
