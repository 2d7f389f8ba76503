# SPDX-License-Identifier: Apache-2.0
"""Parses and writes Thrift's compact protocol, in which a Parquet footer is encoded.

A parsed struct also keeps members of unknown meaning, so an unchanged struct is written as the same
bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, cast

__all__ = [
    "Struct",
    "StructWriter",
    "ThriftKind",
    "ThriftList",
    "Value",
    "number_in",
    "parse_struct",
    "serialize_number",
    "serialize_struct",
    "serialize_structs",
    "serialize_unsigned",
    "structs_in",
]


class ThriftKind(IntEnum):
    """The kinds of values.

    The kind of a boolean member of a struct is also its value: TRUE or FALSE.
    """

    STOP = 0
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    STRUCT = 12


@dataclass(slots=True)
class ThriftList:
    """A list or set of values of one kind."""

    kind: ThriftKind
    items: list[Value]


Value: TypeAlias = "int | float | bytes | Struct | ThriftList"
Struct: TypeAlias = dict[int, tuple[ThriftKind, Value]]
"""The kind and the value of each member, by member number; members are in encoded order."""

_NUMBERS = (ThriftKind.I16, ThriftKind.I32, ThriftKind.I64)
_BOOLEANS = (ThriftKind.TRUE, ThriftKind.FALSE)
_LISTS = (ThriftKind.LIST, ThriftKind.SET)
_KINDS = {kind.value: kind for kind in ThriftKind}
"""The kinds by their numbers: a lookup here is faster than a call of the class."""
_LONG = 15
"""The largest value of the upper four bits of a header byte.

In the header of a member, these bits are the member's number minus the number of the member before.
In the header of a list, 15 means that the length of the list follows.
"""
_DOUBLE = struct.Struct("<d")


def number_in(members: Struct, number: int) -> int:
    """Return the whole number in member ``number``."""
    return cast(int, members[number][1])


def structs_in(members: Struct, number: int) -> list[Struct]:
    """Return the structs of the list in member ``number``."""
    return cast(list[Struct], cast(ThriftList, members[number][1]).items)


def parse_struct(content: bytes) -> Struct:
    """Parse ``content`` as exactly one struct.

    Raise ``ValueError`` or ``IndexError`` if it is invalid.
    """
    reader = _ThriftReader(content)
    found = reader.struct()
    if reader.place != len(content):
        raise ValueError(
            f"a struct ends at byte {reader.place}, but its data has {len(content)} bytes"
        )
    return found


def serialize_struct(members: Struct) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _put_struct(out, members)
    return bytes(out)


def serialize_number(number: int) -> bytes:
    """Return a whole number as a zig-zag varint."""
    out = bytearray()
    _put_signed(out, number)
    return bytes(out)


def serialize_unsigned(number: int) -> bytes:
    """Return an unsigned whole number, such as a length, as a varint."""
    out = bytearray()
    _put_unsigned(out, number)
    return bytes(out)


def serialize_structs(structs: Sequence[bytes]) -> bytes:
    """Return the bytes of a list of structs, made from the bytes of each struct."""
    out = bytearray()
    _put_list_header(out, ThriftKind.STRUCT, len(structs))
    return bytes(out) + b"".join(structs)


class StructWriter:
    """Serialises a struct, without a ``Struct`` in memory.

    The caller writes the members one by one, in ascending order of their numbers.
    """

    __slots__ = ("_last", "_out")

    def __init__(self) -> None:
        self._out = bytearray()
        self._last = 0

    def i32(self, member: int, number: int) -> None:
        self._begin(member, ThriftKind.I32)
        _put_signed(self._out, number)

    def i64(self, member: int, number: int) -> None:
        self._begin(member, ThriftKind.I64)
        _put_signed(self._out, number)

    def flag(self, member: int, *, value: bool) -> None:
        self._begin(member, ThriftKind.TRUE if value else ThriftKind.FALSE)

    def binary(self, member: int, content: bytes) -> None:
        self._begin(member, ThriftKind.BINARY)
        _put_unsigned(self._out, len(content))
        self._out += content

    def struct(self, member: int, content: bytes) -> None:
        """Write a member that is a serialised struct."""
        self._begin(member, ThriftKind.STRUCT)
        self._out += content

    def list(self, member: int, kind: ThriftKind, items: Sequence[Value | bytes]) -> None:
        """Write a list of serialised structs or of other values."""
        self._begin(member, ThriftKind.LIST)
        _put_list_header(self._out, kind, len(items))
        for item in items:
            if kind is ThriftKind.STRUCT:
                self._out += cast(bytes, item)
            else:
                _put_value(self._out, kind, item)

    def close(self) -> bytes:
        self._out.append(ThriftKind.STOP)
        return bytes(self._out)

    def _begin(self, member: int, kind: int) -> None:
        self._out.append(member - self._last << 4 | kind)
        self._last = member


class _ThriftReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def struct(self) -> Struct:
        members: Struct = {}
        number = 0
        while header := self._byte():
            kind, step = _KINDS.get(header & 15) or ThriftKind(header & 15), header >> 4
            number = number + step if step else self._signed()
            members[number] = (
                kind,
                kind is ThriftKind.TRUE if kind in _BOOLEANS else self._value(kind),
            )
        return members

    def _value(self, kind: ThriftKind) -> Value:
        if kind in _NUMBERS:
            return self._signed()
        if kind is ThriftKind.BINARY:
            return self._bytes(self._unsigned())
        if kind is ThriftKind.STRUCT:
            return self.struct()
        if kind in _LISTS:
            header = self._byte()
            item, size = _KINDS.get(header & 15) or ThriftKind(header & 15), header >> 4
            size = self._unsigned() if size == _LONG else size
            return ThriftList(item, [self._value(item) for _ in range(size)])
        if kind is ThriftKind.DOUBLE:
            return float(_DOUBLE.unpack(self._bytes(_DOUBLE.size))[0])
        return self._byte()

    def _bytes(self, size: int) -> bytes:
        found = self._content[self.place : self.place + size]
        if len(found) < size:
            raise ValueError(
                f"a value at byte {self.place} with length {size} extends past the end of its "
                "struct"
            )
        self.place += size
        return found

    def _byte(self) -> int:
        self.place += 1
        return self._content[self.place - 1]

    def _unsigned(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def _signed(self) -> int:
        zigzag = self._unsigned()
        return (zigzag >> 1) ^ -(zigzag & 1)


def _put_struct(out: bytearray, members: Struct) -> None:
    last = 0
    for number, (kind, value) in members.items():
        step = number - last
        last = number
        if 0 < step <= _LONG:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_signed(out, number)
        if kind not in _BOOLEANS:
            _put_value(out, kind, value)
    out.append(ThriftKind.STOP)


def _put_value(out: bytearray, kind: ThriftKind, value: Value) -> None:
    match value:
        case ThriftList(kind=item, items=items):
            _put_list_header(out, item, len(items))
            for part in items:
                _put_value(out, item, part)
        case dict():
            _put_struct(out, value)
        case bytes():
            _put_unsigned(out, len(value))
            out += value
        case float():
            out += _DOUBLE.pack(value)
        case int() if kind in _NUMBERS:
            _put_signed(out, value)
        case int():
            out.append(value)


def _put_list_header(out: bytearray, item: ThriftKind, size: int) -> None:
    out.append(min(size, _LONG) << 4 | item)
    if size >= _LONG:
        _put_unsigned(out, size)


def _put_signed(out: bytearray, number: int) -> None:
    _put_unsigned(out, number << 1 if number >= 0 else ~(number << 1))


def _put_unsigned(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
