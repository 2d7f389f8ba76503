# SPDX-License-Identifier: Apache-2.0
"""System tables show a table's own metadata or rows, such as ``shop.orders$files``.

``registry.py`` lists the system tables with metadata, each in a module of the same name;
``row_tables.py`` has the system tables with rows. Times are in UTC, with two exceptions: the
creation times of files, and of tags that other engines created, are in the writer's local time.
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
