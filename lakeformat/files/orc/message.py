# SPDX-License-Identifier: Apache-2.0
"""Parses protobuf messages of an ORC file; invalid ones raise ``ValueError`` or ``IndexError``."""

from __future__ import annotations

__all__ = ["Message", "numbers", "parse_message", "parts", "single", "varint"]

MAX_VARINT_BITS = 63
_VARINT, _DELIMITED = 0, 2
_FIXED_SIZES = {1: 8, 5: 4}

Message = dict[int, list[int | bytes]]
"""The values of each member of a message, by the number of the member."""


def parse_message(data: bytes) -> Message:
    """Return the members of a message; raise ``ValueError`` or ``IndexError`` if it is invalid."""
    place = 0
    members: Message = {}
    while place < len(data):
        key, place = varint(data, place)
        member, wire = key >> 3, key & 7
        value: int | bytes
        if wire == _VARINT:
            value, place = varint(data, place)
        else:
            if wire == _DELIMITED:
                size, place = varint(data, place)
            elif wire in _FIXED_SIZES:
                size = _FIXED_SIZES[wire]
            else:
                raise ValueError(
                    f"field {member} of a protobuf message has the unknown kind {wire}"
                )
            if place + size > len(data):
                raise ValueError(f"field {member} of a protobuf message is longer than the message")
            value, place = data[place : place + size], place + size
        members.setdefault(member, []).append(value)
    return members


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at offset ``place``, and the offset after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        shift += 7
        if byte < 0x80:
            if value >= 1 << 64:
                raise ValueError("it has a number of more than 64 bits")
            return value, place
        if shift > MAX_VARINT_BITS:
            raise ValueError("it has a number of more than 64 bits")


def single(message: Message, member: int) -> int:
    """Return the value, a number, of a member that occurs at most once; 0 if the member is missing.

    Raise ``ValueError`` if the member occurs more often, or if its value is bytes.
    """
    values = message.get(member, [0])
    if len(values) != 1:
        raise ValueError(f"field {member} of a protobuf message occurs {len(values)} times")
    return _number(values[0])


def parts(message: Message, member: int) -> list[bytes]:
    """Return the bytes of each occurrence of a member; raise ``ValueError`` for a number."""
    found = []
    for value in message.get(member, []):
        if not isinstance(value, bytes):
            raise ValueError(f"field {member} of a protobuf message is a number, not bytes")
        found.append(value)
    return found


def numbers(message: Message, member: int) -> list[int]:
    """Return the values of a repeated member of numbers; some writers pack all into one value."""
    found = []
    for value in message.get(member, []):
        if isinstance(value, int):
            found.append(value)
            continue
        place = 0
        while place < len(value):
            number, place = varint(value, place)
            found.append(number)
    return found


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("a field of a protobuf message has bytes in place of a number")
    return value
