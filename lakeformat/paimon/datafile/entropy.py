# SPDX-License-Identifier: Apache-2.0
"""Directories named by the hash of a file's name, which distribute requests over an object store.

The hash is the standard Murmur3 x86-32 with seed 0 over the name in UTF-8, as in other engines.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["entropy_directories", "is_entropy_directory"]

_C1, _C2, _ADD, _MASK = 0xCC9E2D51, 0x1B873593, 0xE6546B64, 0xFFFFFFFF
_BITS = 20
_ENDS: Final = (4, 8, 12, _BITS)
"""The positions in the hash, in bits, at which the names of the four directories end."""
_DIRECTORY = re.compile(r"[01]{4}|[01]{8}")


def entropy_directories(name: str) -> str:
    """Return the four directories above the file ``name``, such as 1001/0110/1111/00001111."""
    bits = f"{_murmur3(name.encode()) & ((1 << _BITS) - 1):0{_BITS}b}"
    return "/".join(bits[start:end] for start, end in zip((0, *_ENDS), _ENDS, strict=False))


def is_entropy_directory(name: str) -> bool:
    """Return True if ``name`` has the form of a directory name that ``entropy_directories``
    returns.
    """
    return _DIRECTORY.fullmatch(name) is not None


def _murmur3(data: bytes) -> int:
    lane = 0
    for start in range(0, len(data), 4):
        word = int.from_bytes(data[start : start + 4], "little") * _C1 & _MASK
        lane ^= _rotated(word, 15) * _C2 & _MASK
        if start + 4 <= len(data):  # bytes after the last whole word skip this step
            lane = (_rotated(lane, 13) * 5 + _ADD) & _MASK
    lane ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        lane = (lane ^ lane >> shift) * factor & _MASK
    return lane


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK
