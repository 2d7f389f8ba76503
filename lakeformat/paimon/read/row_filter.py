"""What a scan needs to know about a condition on its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lakeformat.rows.prune import Conjunction

__all__ = ["RowFilter"]


class RowFilter(Protocol):
    """A condition on rows: exact when evaluated, and what of it bounds of values can rule out."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns it looks at."""
        ...

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which rows meet it; null counts as not."""
        ...

    def conjuncts(self) -> Sequence[RowFilter]:
        """The parts that must all be met, each one that cannot be split further."""
        ...

    def conditions(self) -> Conjunction:
        """Conditions that each row which meets it meets too; none if bounds cannot tell."""
        ...
