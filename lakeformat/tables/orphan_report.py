# SPDX-License-Identifier: Apache-2.0
"""The orphan files found, and the result of their removal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.tables.moment import moment_text
from lakeformat.tables.report import Report

__all__ = ["OrphanFile", "OrphanReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """An orphan file."""

    path: str
    """URI of the file."""
    kind: str
    """Kind such as ``data``, ``changelog``, ``index`` or ``manifest``; ``other`` is temporary."""
    size: int
    modified_millis: int
    newest_snapshot: int | None
    """Newest remaining snapshot of the main branch when the file was last changed."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the file as plain values."""
        return {**asdict(self), "modified": moment_text(self.modified_millis)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanReport(Report):
    """The outcome of one search for orphan files."""

    table: str
    dry_run: bool
    older_than: str
    """Files changed at this time or later are kept."""
    older_than_reason: str
    override: str | None
    """The age rule that was set aside, if any."""
    looked_through: str
    """The snapshots, tags and changelogs read to find the referenced files."""
    scanned_files: int
    scanned_bytes: int
    orphan_files: int
    """Unreferenced files that are old enough to be removed."""
    orphan_bytes: int
    removed_files: int
    removed_bytes: int
    removed_directories: int
    failures: int
    """Files that could not be removed; the next run tries again."""
    failed: tuple[str, ...]
    """The first failures, each with the reason."""
    young_files: int
    """Unreferenced files that are too new to be removed."""
    young_bytes: int
    kept_by_commit: int | None
    """The newest snapshot, if its time keeps files older than the usual age."""
    writing_files: int
    """Old files whose writer also wrote one newer than the age limit, so it may be active."""
    unknown_files: int
    """Old files with unknown names or unknown age; they are kept."""
    external_paths_left_out: tuple[str, ...]
    """External paths that were skipped because they were not requested."""
    objection: str | None
    """Reason why a removal would be refused; set only in a dry run."""
    files: tuple[OrphanFile, ...]
    """The first orphans; ``on_progress`` is called with each of them."""
    files_left_out: int
    """Number of further orphans."""
    reason: str
    """The outcome in one sentence, for the log."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "files": [file.to_dict() for file in self.files]}
