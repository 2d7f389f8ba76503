# SPDX-License-Identifier: Apache-2.0
"""The report of a publication of Iceberg metadata."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["PublishReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishReport(Report):
    """The result of ``publish_table``."""

    table: str
    snapshot_id: int | None
    """The number of the newest published snapshot; None if the table has no snapshots."""
    published: tuple[int, ...]
    """The numbers of the snapshots that this call published, oldest first."""
    rebuilt: bool
    """True if the call published from scratch: the newest snapshot, and older ones that the table
    still has, at most as many as the option ``iceberg.publish-history`` allows.
    """
    updated: bool
    """True if the call published changed tags, an expiry or a rollback of the table."""
    catalogs: tuple[str, ...]
    """The names of the catalog entries that this call created or moved to new metadata."""
    metadata_file: str | None
    """The URI of the current Iceberg metadata file; None if the table has no snapshots."""
    reason: str
    """The outcome in one sentence, for the log."""
