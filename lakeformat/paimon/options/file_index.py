# SPDX-License-Identifier: Apache-2.0
"""The options for the indexes of data files.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, COLUMN_NAMES, RATIO, SIZE, one_of, whole_number
from lakeformat.paimon.options.option import ColumnOption, Group, Option

__all__ = ["FileIndexOptions"]


class FileIndexOptions:
    """Options for the columns with file indexes, the place of the indexes, and their use by
    scans.
    """

    file_index_read_enabled = Option(
        "file-index.read.enabled",
        BOOLEAN,
        "true",
        "Scans skip files whose index proves that no row matches the condition. Set false if the "
        "indexes of the table are damaged or seldom help.",
        group=Group.PERFORMANCE,
    )
    file_index_in_manifest_threshold_bytes = Option(
        "file-index.in-manifest-threshold",
        SIZE,
        "500 bytes",
        "Size up to which the index of a file is stored in the manifest; a larger one is stored "
        "beside the data file.",
        group=Group.PERFORMANCE,
    )
    file_index_bloom_filter_columns = Option(
        "file-index.bloom-filter.columns",
        COLUMN_NAMES,
        "",
        "Columns with a bloom filter. If a condition has = or IN, scans skip files whose filter "
        "proves that they have none of the wanted values. Suits columns of many values.",
        group=Group.PERFORMANCE,
    )
    file_index_bloom_filter_items = ColumnOption(
        "file-index.bloom-filter.<column>.items",
        whole_number(1, 2**31 - 1),
        "1000000",
        "Expected number of different values of the column in a file; it determines the size of "
        "the filter.",
        group=Group.PERFORMANCE,
    )
    file_index_bloom_filter_false_positives = ColumnOption(
        "file-index.bloom-filter.<column>.fpp",
        RATIO,
        "0.1",
        "Rate at which the filter may report a missing value as present; a lower rate needs a "
        "larger filter.",
        group=Group.PERFORMANCE,
    )
    file_index_bitmap_columns = Option(
        "file-index.bitmap.columns",
        COLUMN_NAMES,
        "",
        "Columns with a bitmap of rows for each value: for =, IN and IS NULL on columns of few "
        "values.",
        group=Group.PERFORMANCE,
    )
    file_index_bitmap_version = ColumnOption(
        "file-index.bitmap.<column>.version",
        one_of("1", "2"),
        "2",
        "Version of the column's bitmap index; older readers support only 1.",
        group=Group.PERFORMANCE,
    )
    file_index_bitmap_block_bytes = ColumnOption(
        "file-index.bitmap.<column>.index-block-size",
        SIZE,
        "16 kb",
        "Number of bytes of values per block of a bitmap index of version 2.",
        group=Group.PERFORMANCE,
    )
    file_index_bsi_columns = Option(
        "file-index.bsi.columns",
        COLUMN_NAMES,
        "",
        "Columns with a bit-sliced index. For new tables use file-index.range-bitmap.columns "
        "instead. A file with a value that the index cannot hold gets no such index.",
        group=Group.PERFORMANCE,
    )
    file_index_range_bitmap_columns = Option(
        "file-index.range-bitmap.columns",
        COLUMN_NAMES,
        "",
        "Columns with an index of the rows in a range of values: for <, > and BETWEEN.",
        group=Group.PERFORMANCE,
    )
    file_index_range_bitmap_chunk_bytes = ColumnOption(
        "file-index.range-bitmap.<column>.chunk-size",
        SIZE,
        "16 kb",
        "Number of bytes of values per block of a range bitmap. Unset: 16 kb; for BOOLEAN, TINYINT "
        "and SMALLINT, one value per block.",
        group=Group.PERFORMANCE,
    )
