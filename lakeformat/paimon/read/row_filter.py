# SPDX-License-Identifier: Apache-2.0
"""The interface of a condition that a scan evaluates and prunes by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakeformat.rows.prune import Conjunction

__all__ = ["RowFilter"]


class RowFilter(Protocol):
    """A condition on rows: exact when evaluated, and partly usable on bounds of values."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns the condition uses."""
        ...

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the rows that meet the condition; null counts as False."""
        ...

    def conjuncts(self) -> Sequence[RowFilter]:
        """Return the conditions that AND joins, split as far as possible; a matching row meets all
        of them.
        """
        ...

    def conditions(self) -> Conjunction:
        """Return conditions that every matching row meets and that bounds can check; maybe none."""
        ...
