"""Gives columns of 12 bytes in a Parquet file the type INT96, while the file is written.

Pages of both types are the same, bytes and encodings; only the footer, the end of the file, tells
them apart. So it is held back and changed.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import IO, cast

from lakeformat.datafile.thrift_compact import (
    Kind,
    Struct,
    Value,
    Values,
    parse_struct,
    serialize_struct,
)

__all__ = ["FooterStream"]

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4
_INT96, _FIXED_LEN_BYTE_ARRAY = 3, 7

# Numbers of members: of the footer, an element of its schema, a row group, a column chunk.
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _TYPE_LENGTH = 1, 2
_COLUMNS = 1
_META_DATA = 3
_CHUNK_TYPE = 1


class FooterStream(io.RawIOBase):
    """Passes a Parquet file on as it comes, and its footer once that is changed."""

    def __init__(self, stream: IO[bytes], leaves: Iterable[int]) -> None:
        """``leaves`` are the numbers of the file's columns that shall be INT96."""
        self._stream = stream
        self._leaves = frozenset(leaves)
        self._held: bytearray | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell() + len(self._held or b"")

    def write(self, content: object) -> int:
        view = memoryview(content)  # type: ignore[arg-type]
        if self._held is None:
            self._stream.write(view)
        else:
            self._held += view
        return view.nbytes

    def hold(self) -> None:
        """Keep what is written from here on: the footer and perhaps a little before it."""
        self._held = bytearray()

    def release(self) -> None:
        """Write what was kept, with the columns changed."""
        assert self._held is not None
        held, self._held = bytes(self._held), None
        end = len(held) - _LENGTH_BYTES - len(_MAGIC)
        start = end - int.from_bytes(held[end : end + _LENGTH_BYTES], "little")
        assert held.endswith(_MAGIC)
        assert start >= 0
        footer = _with_int96(held[start:end], self._leaves)
        length = len(footer).to_bytes(_LENGTH_BYTES, "little")
        self._stream.write(held[:start] + footer + length + _MAGIC)


def _with_int96(content: bytes, leaves: frozenset[int]) -> bytes:
    footer = parse_struct(content)
    elements = [element for element in _structs(footer, _SCHEMA) if _TYPE in element]
    for number in leaves:
        _change(elements[number], _TYPE)
        del elements[number][_TYPE_LENGTH]
    for group in _structs(footer, _ROW_GROUPS):
        chunks = _structs(group, _COLUMNS)
        for number in leaves:
            _change(cast(Struct, chunks[number][_META_DATA][1]), _CHUNK_TYPE)
    return serialize_struct(footer)


def _structs(members: Struct, number: int) -> list[Struct]:
    return cast(list[Struct], cast(Values, members[number][1]).items)


def _change(members: Struct, number: int) -> None:
    found: tuple[Kind, Value] = members[number]
    assert found == (Kind.I32, _FIXED_LEN_BYTE_ARRAY)
    members[number] = Kind.I32, _INT96
