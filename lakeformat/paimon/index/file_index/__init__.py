# SPDX-License-Identifier: Apache-2.0
"""The file index of one data file: for each indexed column, the values that it may have, or
the rows of each value.
"""

from __future__ import annotations

from lakeformat.paimon.index.file_index.bitmap import encode_bitmap_index
from lakeformat.paimon.index.file_index.bloom_filter import (
    BloomFilter,
    BloomFilterWriter,
    encode_bloom_filter,
)
from lakeformat.paimon.index.file_index.bsi import encode_bsi
from lakeformat.paimon.index.file_index.column_index import (
    EMPTY,
    ColumnIndex,
    EmptyIndex,
    IndexType,
    OrderedRowIndex,
    RowIndex,
    open_column_index,
)
from lakeformat.paimon.index.file_index.container import (
    decode_file_index,
    encode_file_index,
    read_file_index,
)
from lakeformat.paimon.index.file_index.range_bitmap import encode_range_bitmap

__all__ = [
    "EMPTY",
    "BloomFilter",
    "BloomFilterWriter",
    "ColumnIndex",
    "EmptyIndex",
    "IndexType",
    "OrderedRowIndex",
    "RowIndex",
    "decode_file_index",
    "encode_bitmap_index",
    "encode_bloom_filter",
    "encode_bsi",
    "encode_file_index",
    "encode_range_bitmap",
    "open_column_index",
    "read_file_index",
]
