# SPDX-License-Identifier: Apache-2.0
"""The report of a search for orphan files and of their removal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.tables.moment import moment_text
from lakeformat.tables.report import Report

__all__ = ["OrphanFile", "OrphanReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """A file that no snapshot, tag, branch or changelog refers to."""

    path: str
    """URI of the file."""
    kind: str
    """The kind: ``data``, ``changelog``, ``index``, ``manifest`` and so on; ``other`` is
    temporary."""
    size: int
    modified_millis: int
    newest_snapshot: int | None
    """The newest existing snapshot of the main branch at the time when the file was last
    changed."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the file as a dict."""
        return {**asdict(self), "modified": moment_text(self.modified_millis)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanReport(Report):
    """The result of one search for orphan files."""

    table: str
    dry_run: bool
    older_than: str
    """The age limit: files changed at this time or later are kept."""
    older_than_reason: str
    override: str | None
    """The age rule that ``allow_younger`` overrode, if any."""
    looked_through: str
    """The snapshots, tags and changelogs whose references were read, in words."""
    scanned_files: int
    scanned_bytes: int
    orphan_files: int
    """Unreferenced files that are old enough to be removed."""
    orphan_bytes: int
    removed_files: int
    removed_bytes: int
    removed_directories: int
    failures: int
    """The number of files that could not be removed; the next run tries again."""
    failed: tuple[str, ...]
    """The first files that could not be removed, each with the reason."""
    young_files: int
    """Unreferenced files that are too young to be removed."""
    young_bytes: int
    kept_by_commit: int | None
    """The newest snapshot, if the age limit is older than usual because of it."""
    writing_files: int
    """Files kept because their writer may be active: it also wrote a file newer than the age
    limit."""
    unknown_files: int
    """Old files of unknown kind or unknown age; they are kept."""
    external_paths_left_out: tuple[str, ...]
    """External paths that were not searched, because the caller did not request them."""
    objection: str | None
    """Set only in a dry run: the reason why a removal would be refused."""
    files: tuple[OrphanFile, ...]
    """The first orphan files; ``on_progress`` gets all of them."""
    files_left_out: int
    """The number of further orphan files, which are not in ``files``."""
    reason: str
    """The outcome in one sentence, for the log."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "files": [file.to_dict() for file in self.files]}
