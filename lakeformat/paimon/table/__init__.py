# SPDX-License-Identifier: Apache-2.0
"""The class ``Table`` (``table.py``), with its methods grouped by subject in the other modules."""

from lakeformat.paimon.table.table import (
    ReadOnlyTable,
    SystemTable,
    Table,
    load_table,
)

__all__ = ["ReadOnlyTable", "SystemTable", "Table", "load_table"]
