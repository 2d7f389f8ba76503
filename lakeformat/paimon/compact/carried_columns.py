# SPDX-License-Identifier: Apache-2.0
"""Finds the columns that a compaction copies dictionary-encoded, without decoding their values."""

from __future__ import annotations

from itertools import chain

from lakeformat.files.file_format import FileFormat
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.file_index_rules import indexed_columns

__all__ = ["carried_columns"]


def carried_columns(schema: TableSchema, output_level: int) -> frozenset[str]:
    """Return the names of the columns that a compaction may copy without decoding their values.

    Neither the merge nor a file index reads these values. The set is empty for merge engines other
    than ``deduplicate``, for formats other than Parquet, and if the table has the option
    ``changelog-producer.row-deduplicate``, which compares values.
    """
    options = schema.table_options
    if not isinstance(merge_engine(schema), Deduplicate) or options.changelog_row_deduplicate:
        return frozenset()
    if _formats(options, output_level) != {FileFormat.PARQUET.value}:
        return frozenset()
    order = merge_order(schema)
    seen = {*order.keys, *order.sequence, *chain(*indexed_columns(options).values())}
    return frozenset(schema.column_names) - seen


def _formats(options: TableOptions, output_level: int) -> set[str]:
    written = [options.of_level(output_level)]
    if options.makes_changelog:
        written.append(options.of_changelog(output_level))
    return {each.file_format for each in written}
