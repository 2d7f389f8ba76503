# SPDX-License-Identifier: Apache-2.0
"""The members that the snapshots of tables of any format have."""

from __future__ import annotations

from typing import Protocol

from lakeformat.tables.position import Position

__all__ = ["TableSnapshot"]


class TableSnapshot(Protocol):
    """One published commit of a table."""

    @property
    def id(self) -> int:
        """The id by which people and other programs name the snapshot; only in some formats it
        counts up.
        """

    @property
    def identity(self) -> str:
        """The identity that no other snapshot has, also not after a rollback."""

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
        """The schema it was written with; None if it is not known."""

    @property
    def delta_record_count(self) -> int:
        """Rows added less rows deleted, as the commit counted them."""

    @property
    def changelog_record_count(self) -> int | None:
        """Rows in its changelog; None without one."""

    @property
    def watermark(self) -> int | None:
        """The table is complete up to this event time; None if it is not known."""

    @property
    def commit_user(self) -> str | None:
        """The user in the identity of the commit; None without one."""
