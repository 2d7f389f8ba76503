"""The options about the index that each data file may have.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, COLUMN_NAMES, RATIO, SIZE, one_of, whole_number
from lakeformat.paimon.options.option import ColumnOption, Group, Option

__all__ = ["FileIndexOptions"]


class FileIndexOptions:
    """Which columns new files index and how, where the index goes, and whether scans use it."""

    file_index_read_enabled = Option(
        "file-index.read.enabled",
        BOOLEAN,
        "true",
        "Whether scans leave out files whose index proves that no row meets their conditions; "
        "false is for tables whose indexes are damaged or seldom help.",
        group=Group.PERFORMANCE,
    )
    file_index_in_manifest_threshold_bytes = Option(
        "file-index.in-manifest-threshold",
        SIZE,
        "500 bytes",
        "The index of a file goes into the manifest up to this size, else beside the data file.",
        group=Group.PERFORMANCE,
    )
    file_index_bloom_filter_columns = Option(
        "file-index.bloom-filter.columns",
        COLUMN_NAMES,
        "",
        "Columns with a filter that tells which values a file cannot have: for = and IN on "
        "columns of many values.",
        group=Group.PERFORMANCE,
    )
    file_index_bloom_filter_items = ColumnOption(
        "file-index.bloom-filter.<column>.items",
        whole_number(1, 2**31 - 1),
        "1000000",
        "How many different values of the column a file is expected to have; the filter's size "
        "follows from it.",
        group=Group.PERFORMANCE,
    )
    file_index_bloom_filter_false_positives = ColumnOption(
        "file-index.bloom-filter.<column>.fpp",
        RATIO,
        "0.1",
        "How often the filter may be wrong about a value that is not there; a larger filter is "
        "wrong less often.",
        group=Group.PERFORMANCE,
    )
    file_index_bitmap_columns = Option(
        "file-index.bitmap.columns",
        COLUMN_NAMES,
        "",
        "Columns whose files say which rows have which value: for =, IN and IS NULL on columns of "
        "few values.",
        group=Group.PERFORMANCE,
    )
    file_index_bitmap_version = ColumnOption(
        "file-index.bitmap.<column>.version",
        one_of("1", "2"),
        "2",
        "Version of the column's bitmap index; older readers know 1 only.",
        group=Group.PERFORMANCE,
    )
    file_index_bitmap_block_bytes = ColumnOption(
        "file-index.bitmap.<column>.index-block-size",
        SIZE,
        "16 kb",
        "How many bytes of values a bitmap index of version 2 finds together.",
        group=Group.PERFORMANCE,
    )
    file_index_bsi_columns = Option(
        "file-index.bsi.columns",
        COLUMN_NAMES,
        "",
        "Columns with a bit-sliced index, which range-bitmap replaces; a file with a value that it "
        "cannot hold goes without.",
        group=Group.PERFORMANCE,
    )
    file_index_range_bitmap_columns = Option(
        "file-index.range-bitmap.columns",
        COLUMN_NAMES,
        "",
        "Columns whose files say which rows have a value in a range: for <, > and BETWEEN.",
        group=Group.PERFORMANCE,
    )
    file_index_range_bitmap_chunk_bytes = ColumnOption(
        "file-index.range-bitmap.<column>.chunk-size",
        SIZE,
        "16 kb",
        "How many bytes of values a range bitmap finds together; unset, types of one or two bytes "
        "take each value alone.",
        group=Group.PERFORMANCE,
    )
