# SPDX-License-Identifier: Apache-2.0
"""The members that snapshots have in every table format."""

from __future__ import annotations

from typing import Protocol

from lakeformat.tables.position import Position

__all__ = ["TableSnapshot"]


class TableSnapshot(Protocol):
    """One snapshot: the result of one commit."""

    @property
    def id(self) -> int:
        """The id of the snapshot; in Iceberg ids are not in the order of commits."""

    @property
    def identity(self) -> str:
        """A text that no other snapshot has, even if a rollback lets another snapshot use the same
        number.
        """

    @property
    def position(self) -> Position:
        """The position of a reader that has read all commits up to this snapshot."""

    @property
    def commit_kind(self) -> str:
        """The kind of the commit: ``APPEND``, ``OVERWRITE``, ``COMPACT`` or ``ANALYZE``."""

    @property
    def time_millis(self) -> int:
        """The time of the commit, in epoch milliseconds."""

    @property
    def schema_id(self) -> int | None:
        """The id of the schema with which the commit was made; None if the id is unknown."""

    @property
    def delta_record_count(self) -> int:
        """The number of added rows minus the number of deleted rows, as the commit counted them."""

    @property
    def changelog_record_count(self) -> int | None:
        """The number of rows in the changelog of the snapshot; None without a changelog."""

    @property
    def watermark(self) -> int | None:
        """The event time, in epoch milliseconds, up to which the table is complete; None if
        unknown.
        """

    @property
    def commit_user(self) -> str | None:
        """The user in the commit identity; None if the commit has no identity."""
