# SPDX-License-Identifier: Apache-2.0
"""The report about the readers of a published table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lakeformat.tables.report import Report

__all__ = ["PublicationCheckReport", "ReaderCheck"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCheck:
    """The outcome of one reader."""

    reader: str
    outcome: Literal["equal", "differ", "failed", "not installed", "not checked"]
    rows: int | None = None
    """The rows that the reader returned; None if it returned none."""
    missing_rows: int = 0
    """Rows of the published files that the reader lacks."""
    other_rows: int = 0
    """Rows of the reader that are not in the published files."""
    reason: str = ""
    """The error, the missing package, or why the reader was not asked."""

    def __str__(self) -> str:
        if self.outcome == "differ":
            return f"{self.reader}: {self.missing_rows} missing, {self.other_rows} other rows"
        return f"{self.reader}: {self.outcome}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationCheckReport(Report):
    """The outcome of ``check_publication``."""

    table: str
    snapshot_id: int | None
    """The published snapshot that the readers read; None if none is published."""
    metadata_file: str | None
    """The address of its Iceberg metadata file."""
    rows: int
    """The rows of the published files, read as a Paimon table."""
    outstanding: str | None
    """The lag of the metadata, as ``lake health`` reports it; None if there is none."""
    readers: tuple[ReaderCheck, ...]
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The problems to act on; empty if every installed reader has the same rows."""
        behind = () if self.outstanding is None else (self.outstanding,)
        bad = (each for each in self.readers if each.outcome in ("differ", "failed"))
        return (*behind, *map(str, bad))
