# SPDX-License-Identifier: Apache-2.0
"""The report about the publication of a table."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["PublishReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishReport(Report):
    """The outcome of ``publish_table``."""

    table: str
    snapshot_id: int | None
    """The newest published snapshot; None if the table has no snapshot."""
    published: tuple[int, ...]
    """The snapshots that this call published."""
    rebuilt: bool
    """True if the call published the newest snapshot without the history before it."""
    updated: bool
    """True if the call published tags, or removed snapshots or tags that the table has deleted."""
    metadata_file: str | None
    """The address of the current Iceberg metadata file."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""
