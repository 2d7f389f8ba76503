# SPDX-License-Identifier: Apache-2.0
"""Maintenance of a table: its steps in order, and the table's figures before and after."""

from lakeformat.iceberg.maintain.maintain import maintain
from lakeformat.iceberg.maintain.steps import IcebergProgress

__all__ = ["IcebergProgress", "maintain"]
