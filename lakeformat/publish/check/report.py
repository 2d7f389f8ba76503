# SPDX-License-Identifier: Apache-2.0
"""The report of ``check_publication``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["PublicationCheckReport", "ReaderCheck"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCheck:
    """The result of the check with one reader."""

    reader: str
    outcome: Literal["equal", "differ", "failed", "known limit", "not installed", "not checked"]
    """The result. With ``known limit``, the reader cannot read tables of this kind, so its error or
    its wrong rows are not a fault of the table.
    """
    rows: int | None = None
    """The number of rows that the reader returned; None if it did not read the table."""
    missing_rows: int = 0
    """The number of rows in the published files that the reader did not return."""
    other_rows: int = 0
    """The number of returned rows that are not in the published files."""
    reason: str = ""
    """The error, the limit, the command that installs the reader, or the reason why it was not
    used.
    """

    def __str__(self) -> str:
        if self.outcome == "differ":
            missing = counted(self.missing_rows, "missing row")
            return f"{self.reader}: {missing}, {counted(self.other_rows, 'other row')}"
        return f"{self.reader}: {self.outcome}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationCheckReport(Report):
    """The result of ``check_publication``."""

    table: str
    snapshot_id: int | None
    """The number of the published snapshot that the readers read; None if no snapshot is published.
    """
    metadata_file: str | None
    """The URI of the Iceberg metadata file of that snapshot; None if no snapshot is published."""
    rows: int
    """The number of rows in the published files, read as a Paimon table."""
    outstanding: str | None
    """A sentence about snapshots that are not published yet, as in ``lake health``; None if there
    are none.
    """
    wrong_files: str | None
    """A sentence about files that the metadata wrongly names or lacks; None if there are none."""
    readers: tuple[ReaderCheck, ...]
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The problems that need an action; empty if there are none."""
        found = (each for each in (self.outstanding, self.wrong_files) if each is not None)
        bad = (each for each in self.readers if each.outcome in ("differ", "failed"))
        return (*found, *map(str, bad))
