# SPDX-License-Identifier: Apache-2.0
"""The options for reading a table.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, SIZE
from lakeformat.paimon.options.option import Group, Option

__all__ = ["ReadOptions"]


class ReadOptions:
    """Options for the size and the order of the splits of a scan."""

    scan_plan_sort_partition = Option(
        "scan.plan-sort-partition",
        BOOLEAN,
        "false",
        "Scans read partitions in ascending order of their values, nulls first; if false, in the "
        "order of their first write.",
    )
    source_split_target_size_bytes = Option(
        "source.split.target-size",
        SIZE,
        "128 mb",
        "Total size of the files of one bucket that are read together; a smaller size gives more "
        "splits for parallel readers.",
        group=Group.PERFORMANCE,
    )
    source_split_open_file_cost_bytes = Option(
        "source.split.open-file-cost",
        SIZE,
        "4 mb",
        "Scans combine files into splits; one reader reads one split. A file that is smaller than "
        "this size counts as if it had this size. So a larger size puts fewer small files into one "
        "split.",
        group=Group.PERFORMANCE,
    )
