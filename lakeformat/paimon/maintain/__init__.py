# SPDX-License-Identifier: Apache-2.0
"""Maintenance of a table: its steps in order, and the table's figures before and after."""

from lakeformat.paimon.maintain.maintain import maintain
from lakeformat.paimon.maintain.maintain_report import MaintainProgress, MaintainReport

__all__ = ["MaintainProgress", "MaintainReport", "maintain"]
