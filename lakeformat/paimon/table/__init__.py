# SPDX-License-Identifier: Apache-2.0
"""The table that users hold (``table.py``), with its operations grouped by subject."""

from lakeformat.paimon.table.table import (
    ReadOnlyTable,
    SystemTable,
    Table,
    load_table,
)

__all__ = ["ReadOnlyTable", "SystemTable", "Table", "load_table"]
