# SPDX-License-Identifier: Apache-2.0
"""Steps, report and remaining problems of a maintenance, for tables of any format."""

from lakeformat.tables.maintain.maintain_report import MaintainProgress, MaintainReport

__all__ = ["MaintainProgress", "MaintainReport"]
