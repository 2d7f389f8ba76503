# SPDX-License-Identifier: Apache-2.0
"""The interface of merge engines: the rows of each key become one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakeformat.rows.groups import KeyGroups

__all__ = ["MergeEngine"]


class MergeEngine(Protocol):
    """Merges the rows of each key in a write buffer, a compaction or a read.

    Rows are tables of ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and columns of the table. If a key has
    a single row, every engine returns this row and its kind unchanged, unless the row must be
    merged (see ``KeyGroups.meets``).
    """

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns``, and after them the other columns that a merge of ``columns`` must
        read.
        """
        ...

    def merge(self, rows: pa.Table, groups: KeyGroups) -> pa.Table:
        """Return one row per key, in key order, with the columns of ``rows``.

        A merged row may be a retract: reads drop it, writers keep it. Its sequence number is that
        of the last row that was not ignored, or, with ``first-row``, of the first row. A key whose
        rows were all ignored because of ``ignore-delete`` has no row in the result. Raise
        InvalidRequestError for a row that the engine cannot merge.
        """
        ...
