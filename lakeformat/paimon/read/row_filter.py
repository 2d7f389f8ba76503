# SPDX-License-Identifier: Apache-2.0
"""The interface of a condition, by which a scan selects rows and skips files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakeformat.rows.prune import Conjunction

__all__ = ["RowFilter"]


class RowFilter(Protocol):
    """A condition on rows: evaluated for batches of rows, and used to skip files by their
    bounds.
    """

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the condition uses."""
        ...

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the rows that meet the condition; null counts as False."""
        ...

    def conjuncts(self) -> Sequence[RowFilter]:
        """Return the parts of the condition that are connected by AND, split as far as possible.

        A row must meet all of them.
        """
        ...

    def conditions(self) -> Conjunction:
        """Return conditions for skipping files: each row that meets this filter meets all of these
        conditions.

        The result may be empty: not every condition can be compared with bounds.
        """
        ...
