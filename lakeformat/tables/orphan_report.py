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
    """The URI of the file."""
    kind: str
    """The kind of file: ``data``, ``changelog``, ``index``, ``manifest`` and so on; ``other`` is a
    temporary file, or a file of unknown kind.
    """
    size: int
    modified_millis: int
    newest_snapshot: int | None
    """The newest snapshot of main that still exists and was published before the file's last
    change.

    None if there is no such snapshot.
    """
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the file as a dict, ready for JSON."""
        return {**asdict(self), "modified": moment_text(self.modified_millis)}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanReport(Report):
    """The result of one search for orphan files, and of their removal."""

    table: str
    dry_run: bool
    older_than: str
    """The age limit: files changed at this time or later are kept."""
    older_than_reason: str
    override: str | None
    """The age rule that ``allow_younger`` overrode; None if no rule was overridden."""
    looked_through: str
    """The snapshots, tags and changelogs whose references were read, as text."""
    scanned_files: int
    scanned_bytes: int
    orphan_files: int
    """The number of unreferenced files that are old enough to be removed."""
    orphan_bytes: int
    removed_files: int
    removed_bytes: int
    removed_directories: int
    failures: int
    """The number of files that could not be removed; the next run tries again."""
    failed: tuple[str, ...]
    """The URIs of the first files that could not be removed, each with the reason."""
    young_files: int
    """The number of unreferenced files that are too young to be removed."""
    young_bytes: int
    kept_by_commit: int | None
    """The id of the newest snapshot, if its commit made the age limit earlier; else None.

    The default age limit of a Paimon table is at least one day before the newest commit. If this
    rule makes the limit earlier by at most 5 minutes, the value is None.
    """
    writing_files: int
    """The number of unreferenced files that are kept because their writer may still be running.

    A writer may still be running if it has written another file after the age limit.
    """
    unknown_files: int
    """The number of files that are kept because no known writer gives files such names, or
    because their ages are unknown.
    """
    external_paths_left_out: tuple[str, ...]
    """External paths that were not searched, because the caller did not request them."""
    objection: str | None
    """In a dry run: the reason why a removal would be refused; None if it would be done."""
    files: tuple[OrphanFile, ...]
    """The first orphan files. A dry run calls ``on_progress`` with every orphan file."""
    files_left_out: int
    """The number of orphan files that are not in ``files``."""
    reason: str
    """The outcome in one sentence, for the log."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        return {**asdict(self), "files": [file.to_dict() for file in self.files]}
