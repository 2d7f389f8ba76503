# SPDX-License-Identifier: Apache-2.0
"""The report of comparing the rows of Iceberg readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lakeformat.tables.report import Report

__all__ = ["PublicationCheckReport", "ReaderCheck"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCheck:
    """The result of one reader."""

    reader: str
    outcome: Literal["equal", "differ", "failed", "known limit", "not installed", "not checked"]
    """``known limit``: the reader cannot read such tables, so its error or its other rows are no
    problem of the table."""
    rows: int | None = None
    """The number of rows that the reader returned; None if it returned none."""
    missing_rows: int = 0
    """The number of rows in the published files that the reader did not return."""
    other_rows: int = 0
    """The number of returned rows that are not in the published files."""
    reason: str = ""
    """The error, the missing package, or the reason why the reader was not used."""

    def __str__(self) -> str:
        if self.outcome == "differ":
            return f"{self.reader}: {self.missing_rows} missing, {self.other_rows} other rows"
        return f"{self.reader}: {self.outcome}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationCheckReport(Report):
    """The result of ``check_publication``."""

    table: str
    snapshot_id: int | None
    """The published snapshot that the readers read; None if none is published."""
    metadata_file: str | None
    """The URI of the Iceberg metadata file of that snapshot."""
    rows: int
    """The number of rows in the published files, read as a Paimon table."""
    outstanding: str | None
    """Words about snapshots that are not published yet, as in ``lake health``; None if there are
    none."""
    wrong_files: str | None
    """Words about files that the metadata names although no publication did, or does not name
    although they are published; None if there are none."""
    readers: tuple[ReaderCheck, ...]
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The problems that need an action; empty if every installed reader has the same rows."""
        found = (each for each in (self.outstanding, self.wrong_files) if each is not None)
        bad = (each for each in self.readers if each.outcome in ("differ", "failed"))
        return (*found, *map(str, bad))
