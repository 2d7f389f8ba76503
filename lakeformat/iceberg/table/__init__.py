# SPDX-License-Identifier: Apache-2.0
"""The public class of an Iceberg table; one module for each subject."""

from __future__ import annotations

from lakeformat.iceberg.table.table import IcebergTable, load_iceberg_table

__all__ = ["IcebergTable", "load_iceberg_table"]
