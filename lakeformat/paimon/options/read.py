"""The options that say how a table is read.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, SIZE
from lakeformat.paimon.options.option import Group, Option

__all__ = ["ReadOptions"]


class ReadOptions:
    """How much is read at once, and in which order."""

    scan_plan_sort_partition = Option(
        "scan.plan-sort-partition",
        BOOLEAN,
        "false",
        "Whether a scan reads partitions in the ascending order of their values, nulls first, and "
        "not in the order they were first written to.",
    )
    source_split_target_size_bytes = Option(
        "source.split.target-size",
        SIZE,
        "128 mb",
        "Files of one bucket are read together up to this size; smaller is more pieces for "
        "several readers.",
        group=Group.PERFORMANCE,
    )
    source_split_open_file_cost_bytes = Option(
        "source.split.open-file-cost",
        SIZE,
        "4 mb",
        "What a file counts at least when files are put together; larger is fewer small files "
        "in one piece.",
        group=Group.PERFORMANCE,
    )
