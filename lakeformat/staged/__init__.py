"""Results that are written by one job and published by another."""

from lakeformat.staged.discard import DiscardReport
from lakeformat.staged.table_staged import TableStaged

__all__ = ["DiscardReport", "TableStaged"]
