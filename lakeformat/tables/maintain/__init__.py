# SPDX-License-Identifier: Apache-2.0
"""The part of a maintenance that tables of all formats share: steps, report and obstacles."""

from lakeformat.tables.maintain.maintain_report import MaintainProgress, MaintainReport

__all__ = ["MaintainProgress", "MaintainReport"]
