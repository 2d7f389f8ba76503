# SPDX-License-Identifier: Apache-2.0
"""The table that users hold."""

from __future__ import annotations

from lakeformat.iceberg.table.table import IcebergTable, load_iceberg_table

__all__ = ["IcebergTable", "load_iceberg_table"]
