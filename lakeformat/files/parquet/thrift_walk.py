# SPDX-License-Identifier: Apache-2.0
"""Finds members in Thrift's compact protocol without parsing whole structs, in a tenth of the time.

The bytes must be valid.
"""

from __future__ import annotations

from lakeformat.files.parquet.thrift_compact import ThriftKind

__all__ = [
    "binary_lengths",
    "find_member",
    "list_at",
    "member_places",
    "number_at",
    "skip_struct",
    "structs_at",
]

_TRUE_OR_FALSE = int(ThriftKind.FALSE)
_FIRST_NUMBER, _LAST_NUMBER = int(ThriftKind.I16), int(ThriftKind.I64)
_DOUBLE, _BINARY, _STRUCT = int(ThriftKind.DOUBLE), int(ThriftKind.BINARY), int(ThriftKind.STRUCT)
_LISTS = (int(ThriftKind.LIST), int(ThriftKind.SET))
_KNOWN = frozenset(map(int, ThriftKind))
_UUID = 13
_LONG = 15
"""The value in a header that means: the length of the list follows."""


def find_member(content: bytes, place: int, member: int) -> tuple[int, bool]:
    """Find a member in the struct at offset ``place``; return the offset of its value, and True.

    If the struct lacks the member, return the offset of the struct's last byte and False.
    """
    number = 0
    while header := content[place]:
        number, place = _numbered(content, place, number)
        if number == member:
            return place, True
        place = _after(content, place, header & 15)
    return place, False


def member_places(content: bytes, place: int) -> tuple[dict[int, int], int]:
    """Return the offset of each member's value in the struct at ``place``, by member number.

    Also return the offset after the struct.
    """
    places: dict[int, int] = {}
    number = 0
    while header := content[place]:
        number, place = _numbered(content, place, number)
        places[number] = place
        place = _after(content, place, header & 15)
    return places, place + 1


def number_at(content: bytes, place: int) -> tuple[int, int]:
    """Return the whole number at offset ``place``, and the offset after it."""
    zigzag, place = _unsigned(content, place)
    return (zigzag >> 1) ^ -(zigzag & 1), place


def structs_at(content: bytes, place: int) -> tuple[list[bytes], int]:
    """Return the bytes of each struct in the list at ``place``, and the offset after the list."""
    size, place = list_at(content, place)
    found = []
    for _ in range(size):
        end = skip_struct(content, place)
        found.append(content[place:end])
        place = end
    return found, place


def list_at(content: bytes, place: int) -> tuple[int, int]:
    """Return the length of the list of structs at ``place``, and the offset of its first item."""
    size = content[place] >> 4
    return (size, place + 1) if size < _LONG else _unsigned(content, place + 1)


def binary_lengths(content: bytes, place: int) -> tuple[dict[int, int], int]:
    """Return the length of each binary member in the struct at ``place``, by member number.

    Also return the offset after the struct.
    """
    lengths: dict[int, int] = {}
    number = 0
    while header := content[place]:
        number, place = _numbered(content, place, number)
        if header & 15 == _BINARY:
            lengths[number], _ = _unsigned(content, place)
        place = _after(content, place, header & 15)
    return lengths, place + 1


def skip_struct(content: bytes, place: int) -> int:
    """Return the offset after a struct.

    ``place`` is the offset of the struct, or of one of its members.
    """
    while header := content[place]:
        place += 1
        kind = header & 15
        if header <= _LONG:
            _, place = _unsigned(content, place)
        if _FIRST_NUMBER <= kind <= _LAST_NUMBER:
            while content[place] > 127:
                place += 1
            place += 1
        elif kind > _TRUE_OR_FALSE:
            place = _after(content, place, kind)
    return place + 1


def _numbered(content: bytes, place: int, last: int) -> tuple[int, int]:
    """Return the number of the member at ``place``, and the offset of its value.

    ``last`` is the number of the member before it.
    """
    if step := content[place] >> 4:
        return last + step, place + 1
    return number_at(content, place + 1)


def _after(content: bytes, place: int, kind: int, *, is_item: bool = False) -> int:
    if _FIRST_NUMBER <= kind <= _LAST_NUMBER:
        while content[place] > 127:
            place += 1
        return place + 1
    if kind == _BINARY:
        size, place = _unsigned(content, place)
        return place + size
    if kind == _STRUCT:
        return skip_struct(content, place)
    if kind in _LISTS:
        item = content[place] & 15
        size, place = list_at(content, place)
        for _ in range(size):
            place = _after(content, place, item, is_item=True)
        return place
    if kind == _DOUBLE:
        return place + 8
    if kind == _UUID:
        return place + 16
    if kind > _STRUCT or kind not in _KNOWN:
        raise OSError(f"a footer has a value of kind {kind}, which Parquet does not use")
    # In a struct a boolean is its own value.
    return place if kind <= _TRUE_OR_FALSE and not is_item else place + 1


def _unsigned(content: bytes, place: int) -> tuple[int, int]:
    number = content[place]
    if number < 128:
        return number, place + 1
    number, shift = number & 127, 7
    while (byte := content[place + 1]) > 127:
        number |= (byte & 127) << shift
        shift += 7
        place += 1
    return number | byte << shift, place + 2
