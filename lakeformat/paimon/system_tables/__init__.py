# SPDX-License-Identifier: Apache-2.0
"""System tables show a table's own metadata as rows, such as ``shop.orders$files``.

``registry.py`` lists the system tables. The module of a system table has the name of the table.
Times are in UTC, except the creation times of files, and of tags by other engines: these are in the
local time of the writer.
"""

from __future__ import annotations

from lakeformat.paimon.system_tables.declaration import SystemTableDeclaration
from lakeformat.paimon.system_tables.registry import find_system_table, system_table_names
from lakeformat.paimon.system_tables.row_tables import RowSelection, RowTable, find_row_table
from lakeformat.paimon.system_tables.scan import SystemScan
from lakeformat.paimon.system_tables.source import Source

__all__ = [
    "RowSelection",
    "RowTable",
    "Source",
    "SystemScan",
    "SystemTableDeclaration",
    "find_row_table",
    "find_system_table",
    "system_table_names",
]
