"""What every merge engine does: from the rows of each key to the one row that replaces them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakeformat.rows.groups import KeyGroups

__all__ = ["MergeEngine"]


class MergeEngine(Protocol):
    """Merges rows wherever rows of one key meet: in a write buffer, a compaction or a read.

    Rows are tables of ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and columns of the table. A key with
    one row keeps that row unchanged, kind and all, whatever the engine does to rows that meet.
    """

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns to read so that ``columns`` come out right, these among them."""
        ...

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        """One row per key, in key order, with the columns of ``rows``.

        A result may be a retract; who reads leaves it out, who writes keeps it. The sequence
        number is that of the last row that was looked at. A key is missing if all of its rows
        were looked past, as ``ignore-delete`` asks.
        """
        ...
