# SPDX-License-Identifier: Apache-2.0
"""The reports of clones and migrations, and the advice to drop an unfinished clone."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CloneReport", "MigrateReport", "MigratedFile", "drop_advice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReport(Report):
    """The result of cloning one table, or of its dry run."""

    source: str
    target: str
    what: str
    """The part of the table that was copied: ``everything``, ``snapshot <id>``, or ``the schema of
    an empty table``; for a Mixed table ``position <position>``.
    """
    dry_run: bool
    files: int
    """The number of data, index and metadata files of the clone; 0 if an earlier attempt had copied
    all files.

    For a Mixed table, the number of data files of the clone; in a dry run, the number of files of
    the source that would be read.
    """
    copied: int
    """The number of files that this call copied. The remaining files were copied by an earlier
    attempt, or would be copied without ``dry_run``.
    """
    bytes: int
    snapshot_ids: tuple[int, ...]
    """The ids of the snapshots in the main branch of the clone."""
    reason: str
    """The outcome in one sentence, for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigratedFile:
    """A file of a migrated directory, and how it got into the table."""

    file: str
    partition: str
    how: str
    """``registered`` in place, ``copied`` unchanged, or ``converted`` into a new file."""
    reason: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateReport(Report):
    """The result of migrating a directory, or of its dry run."""

    source: str
    table: str
    dry_run: bool
    columns: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...]
    files: tuple[MigratedFile, ...]
    skipped: tuple[str, ...]
    """The URIs of files and directories that were ignored, because their names begin with a dot or
    an underscore.
    """
    rows: int
    snapshot_id: int | None
    replayed: bool
    reason: str
    """The outcome in one sentence, for the log."""


def drop_advice(warehouse: str, table: object, *, is_iceberg: bool = False) -> str:
    """Return the part of a message that names the call and the command to drop ``table``.

    ``table`` is an unfinished clone in ``warehouse``.
    """
    at = f"lake -w {shlex.quote(warehouse)}"
    if is_iceberg:
        return (
            "drop_table of the target catalog (purge=True), or "
            f"`{at} --format iceberg drop-table {table} --purge`"
        )
    return f"drop_table of the target catalog, or `{at} drop-table {table}`"
