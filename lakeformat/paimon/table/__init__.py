"""The table a user holds: ``table.py``; what it can do stands beside it, subject by subject."""

from lakeformat.paimon.table.table import (
    Overwritten,
    ReadOnlyTable,
    SystemTable,
    Table,
    load_table,
)

__all__ = ["Overwritten", "ReadOnlyTable", "SystemTable", "Table", "load_table"]
