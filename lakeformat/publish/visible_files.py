# SPDX-License-Identifier: Apache-2.0
"""Selects the data files that Iceberg readers may read: those whose rows need no merge."""

from __future__ import annotations

from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.schema import TableSchema

__all__ = ["visible_files"]


def visible_files(schema: TableSchema, files: ManifestColumns, level_count: int) -> Mask:
    """Return a mask of the files that readers can read without a merge.

    Append table: all files. Primary-key table: the files of the highest level, where each key
    occurs once. With the merge engine ``first-row``: the files of all levels above 0. A file of a
    primary-key table that has delete markers is never selected. ``level_count`` is the largest
    number of levels that the table has had.
    """
    levels, deletes = files.level.numbers, files.delete_row_count.numbers
    if not schema.primary_keys:
        every: Mask = levels == levels
        return every
    if schema.table_options.merge_engine == "first-row":
        single: Mask = (levels > 0) & (deletes == 0)
        return single
    top: Mask = (levels == level_count - 1) & (deletes == 0)
    return top
