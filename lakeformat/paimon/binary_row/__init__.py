# SPDX-License-Identifier: Apache-2.0
"""Binary rows: the bytes in which partitions, keys and statistics are stored.

A framed row has its number of fields (4 bytes, big endian) in front. The hash of a row without the
frame gives its bucket. ``encode_row`` and ``decode_row`` convert one row of any types;
``encode_columns`` and ``decode_columns`` convert the columns of many rows.
"""

from __future__ import annotations

from lakeformat.paimon.binary_row.column_decoder import FramedRows, decode_columns
from lakeformat.paimon.binary_row.column_encoder import encode_columns
from lakeformat.paimon.binary_row.decode import decode_row
from lakeformat.paimon.binary_row.encode import encode_row
from lakeformat.paimon.binary_row.layout import frame_row, unframe_row
from lakeformat.paimon.binary_row.murmur import hash_row

__all__ = [
    "FramedRows",
    "decode_columns",
    "decode_row",
    "encode_columns",
    "encode_row",
    "frame_row",
    "hash_row",
    "unframe_row",
]
