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
        """The id of the snapshot; in some formats ids are not in the order of commits."""

    @property
    def identity(self) -> str:
        """A text that identifies this snapshot: no other snapshot has it, even after a rollback."""

    @property
    def position(self) -> Position:
        """The position of a reader that has read all commits up to this one."""

    @property
    def commit_kind(self) -> str:
        """``APPEND``, ``OVERWRITE``, ``COMPACT`` or ``ANALYZE``."""

    @property
    def time_millis(self) -> int:
        """The time of the commit."""

    @property
    def schema_id(self) -> int | None:
        """The id of the schema that the commit used; None if it is not known."""

    @property
    def delta_record_count(self) -> int:
        """The number of added rows minus the number of deleted rows, as the commit counted them."""

    @property
    def changelog_record_count(self) -> int | None:
        """The number of rows in the changelog of the snapshot; None if it has none."""

    @property
    def watermark(self) -> int | None:
        """The event time up to which the table is complete; None if it is not known."""

    @property
    def commit_user(self) -> str | None:
        """The user in the identity of the commit; None if the commit has no identity."""
