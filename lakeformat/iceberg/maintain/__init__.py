# SPDX-License-Identifier: Apache-2.0
"""Maintenance of an Iceberg table: its steps, and the health of the table before and after."""

from lakeformat.iceberg.maintain.maintain import maintain
from lakeformat.iceberg.maintain.steps import IcebergProgress

__all__ = ["IcebergProgress", "maintain"]
