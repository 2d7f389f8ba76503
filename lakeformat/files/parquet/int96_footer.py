# SPDX-License-Identifier: Apache-2.0
"""Changes the type of columns of 12 bytes to INT96 in a Parquet footer, before it is written.

The pages of both types have the same bytes and encodings; only the footer distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from lakeformat.files.parquet.thrift_compact import (
    Struct,
    ThriftKind,
    Value,
    parse_struct,
    serialize_struct,
    structs_in,
)

__all__ = ["with_int96"]

_INT96, _FIXED_LEN_BYTE_ARRAY = 3, 7

# Member numbers of the footer, an element of its schema, a row group, a column chunk.
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _TYPE_LENGTH = 1, 2
_COLUMNS = 1
_META_DATA = 3
_CHUNK_TYPE = 1


def with_int96(content: bytes, leaves: Iterable[int]) -> bytes:
    """Return the footer ``content`` with the type INT96 for the leaf columns ``leaves``.

    ``leaves`` are the numbers of the columns, from 0 on.
    """
    footer = parse_struct(content)
    elements = [element for element in structs_in(footer, _SCHEMA) if _TYPE in element]
    for number in leaves:
        _change(elements[number], _TYPE)
        del elements[number][_TYPE_LENGTH]
    for group in structs_in(footer, _ROW_GROUPS):
        chunks = structs_in(group, _COLUMNS)
        for number in leaves:
            _change(cast(Struct, chunks[number][_META_DATA][1]), _CHUNK_TYPE)
    return serialize_struct(footer)


def _change(members: Struct, number: int) -> None:
    found: tuple[ThriftKind, Value] = members[number]
    assert found == (ThriftKind.I32, _FIXED_LEN_BYTE_ARRAY)
    members[number] = ThriftKind.I32, _INT96
