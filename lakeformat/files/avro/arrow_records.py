# SPDX-License-Identifier: Apache-2.0
"""Encodes Arrow columns as Avro records, column by column.

A date, time or timestamp is written as the integer that the Arrow column stores, so this column
must have the time unit of the schema. The column of a ``fixed`` type has binary values of the
declared size, or decimals.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.files.avro.pieces import (
    BytesPiece,
    Piece,
    WordPiece,
    encode_groups,
    list_pieces,
    number_pieces,
)
from lakeformat.files.nested_arrays import list_around, map_entries, struct_children
from lakeformat.types.arrow_memory import null_mask, numbers, spans
from lakeformat.types.unaligned import Positions

__all__ = ["encode_records"]

Mask: TypeAlias = NDArray[np.bool_]
_READABLE_AFTER = 8
_DECIMAL_SIZE = 16


def encode_records(schema: Any, rows: pa.StructArray) -> tuple[NDArray[np.uint8], Positions]:
    """Return the bytes of all records, one after the other, and the end offset of each record.

    ``schema`` is the parsed JSON schema of a record. Columns are matched to its fields by position,
    not by name. Raise ``ValueError`` for a null in a required field, and for an unknown type.
    """
    return encode_groups(
        len(rows), lambda some: _pieces(rows[some.start : some.stop], schema, schema)
    )


def _named_types(declared: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the definition of each named type in the schema ``declared``.

    The rest of the schema may refer to the type by its name.
    """
    if isinstance(declared, list):
        for branch in declared:
            yield from _named_types(branch)
    elif isinstance(declared, dict):
        if "name" in declared:
            yield declared["name"], declared
        for field in declared.get("fields", ()):
            yield from _named_types(field["type"])
        yield from _named_types(declared.get("items"))


def _pieces(array: pa.Array, declared: Any, schema: Any) -> list[Piece]:
    """Return the pieces of a field of the type ``declared``.

    A piece has one number or byte string for each record. ``schema`` is the schema of the whole
    record, which defines all named types.
    """
    pieces: list[Piece] = []
    _add_values(pieces, array, declared, schema)
    return pieces


def _add_values(pieces: list[Piece], array: pa.Array, declared: Any, schema: Any) -> None:
    """Add the pieces of a field. In an optional field, the number of the union branch is written
    before each value.

    Raise ``ValueError`` for a null in a required field.
    """
    nulls = null_mask(array)
    known = None if nulls is None else ~nulls
    if not isinstance(declared, list):
        if known is not None:
            raise ValueError(f"a required field of the type {declared} has nulls")
        _add_present(pieces, array, declared, None, schema)
        return
    null_branch = declared.index("null")
    branches = np.full(len(array), 1 - null_branch, np.int64)
    if nulls is not None:
        branches[nulls] = null_branch
    pieces += number_pieces(branches)
    if known is None or known.any():
        _add_present(pieces, array, declared[1 - null_branch], known, schema)


def _add_present(
    pieces: list[Piece], array: pa.Array, declared: Any, present: Mask | None, schema: Any
) -> None:
    """Add the pieces of a field without the numbers of union branches.

    Records where ``present`` is False get no bytes; None means that all records have a value. Raise
    ``ValueError`` if the type of the field is a record and ``present`` is not None.
    """
    match declared["type"] if isinstance(declared, dict) else declared:
        case "record":
            if present is not None:
                raise ValueError(f"a field of the type {declared['name']} has null records")
            for child, field in zip(struct_children(array), declared["fields"], strict=True):
                _add_values(pieces, child, field["type"], schema)
        case "array":
            pieces += _list(array, declared["items"], present, schema)
        case "int" | "long":
            pieces += number_pieces(numbers(array).astype(np.int64), present)
        case "boolean":
            pieces.append(_word(numbers(array).astype(np.uint64), 1, present))
        case "float" | "double":
            values = numbers(array)
            size = values.dtype.itemsize
            pieces.append(_word(values.view(f"<u{size}").astype(np.uint64), size, present))
        case "string" | "bytes":
            words, starts, sizes = spans(array, None if present is None else ~present)
            pieces += number_pieces(sizes, present)
            pieces.append(BytesPiece(words.view(np.uint8), starts, sizes))
        case "fixed":
            pieces.append(_fixed(array, declared["size"], present))
        case str(name) if (named := dict(_named_types(schema)).get(name)) is not None:
            _add_present(pieces, array, named, present, schema)
        case unknown:
            raise ValueError(f"a field has the Avro type {unknown}, which this encoder lacks")


def _list(array: pa.Array, item: Any, present: Mask | None, schema: Any) -> list[Piece]:
    """Return the pieces of lists; a map is encoded as a list of pairs of key and value."""
    if pa.types.is_map(array.type):
        pairs = pa.StructArray.from_arrays(map_entries(array), ["key", "value"])
        array = list_around(array, pairs, pa.list_(pairs.type))
    offsets = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)
    counts = np.diff(offsets[array.offset : array.offset + len(array) + 1]).astype(np.int64)
    if present is not None:
        counts[~present] = 0
    items = array.flatten()  # The elements of a null list are left out.
    return list_pieces(counts, present, partial(_pieces, items, item, schema))


def _word(words: NDArray[np.uint64], size: int, present: Mask | None) -> WordPiece:
    if present is None:
        return WordPiece(words, size, size)
    return WordPiece(np.where(present, words, np.uint64(0)), np.where(present, size, 0), size)


def _fixed(array: pa.Array, size: int, present: Mask | None) -> BytesPiece:
    if pa.types.is_decimal(array.type):  # little-endian in Arrow, and big-endian in Avro
        wide = numbers(array).view(np.uint8).reshape(len(array), _DECIMAL_SIZE)
        stored = wide[:, size - 1 :: -1].reshape(-1)
    else:
        first = array.offset * size
        content = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        stored = content[first : first + len(array) * size]
    readable = np.concatenate((stored, np.zeros(_READABLE_AFTER, np.uint8)))
    starts = np.arange(len(array)) * size
    return BytesPiece(readable, starts, size if present is None else np.where(present, size, 0))
