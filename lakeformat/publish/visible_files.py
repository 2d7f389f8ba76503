# SPDX-License-Identifier: Apache-2.0
"""The data files that Iceberg readers may see: those whose rows need no merge."""

from __future__ import annotations

from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.schema import TableSchema

__all__ = ["visible_files"]


def visible_files(schema: TableSchema, files: ManifestColumns, level_count: int) -> Mask:
    """Return a mask of the files whose rows are rows of the table.

    All files of an append table; of a primary-key table those of the highest level, where each key
    is once; ``level_count`` is the most levels that it had. With ``first-row`` each key is once on
    all levels above 0. A file with delete markers is never among them.
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
