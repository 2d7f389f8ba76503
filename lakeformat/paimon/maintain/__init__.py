"""Maintenance of a table: the steps it needs in their order, with figures of before and after."""

from lakeformat.paimon.maintain.maintain import maintain
from lakeformat.paimon.maintain.maintain_report import MaintainProgress, MaintainReport

__all__ = ["MaintainProgress", "MaintainReport", "maintain"]
