# SPDX-License-Identifier: Apache-2.0
"""Keeps freed memory in the library's own processes, so that their next work reuses it.

Otherwise the kernel takes the memory back, and clears each page for the next work. That takes a
tenth of the time of a Spark task, and a quarter of the time to decode a manifest.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

__all__ = ["give_back_too_much", "keep_freed_memory"]

_KEPT_BYTES = 512 << 20
"""The largest amount of free memory that a process keeps, in bytes. Most Spark tasks free less."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Two options of glibc's ``mallopt``. The first limits how much freed memory is kept; the second
limits the size of each piece of memory that can be kept.
"""
_LARGEST_BYTES = 32 << 20
"""The largest piece of memory, in bytes, that older versions of glibc can keep."""

_MALLOC_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks"),
    *("fordblks", "keepcost"),
)


class _MallocInfo(ctypes.Structure):
    """The result of glibc's ``mallinfo2``; ``fordblks`` is the number of free bytes."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _MALLOC_FIELDS)


def keep_freed_memory() -> bool:
    """Make this process keep freed memory until it ends; return False if its C library cannot.

    Call this only in the library's own processes, never in a process of its users.
    """
    libc = _glibc()
    if libc is None:
        return False
    # Setting only the kept memory would stop glibc from adapting the size of pieces.
    if not any(libc.mallopt(_MMAP_THRESHOLD, size) for size in (_KEPT_BYTES, _LARGEST_BYTES)):
        return False
    return bool(libc.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))


def give_back_too_much() -> None:
    """Return free memory to the kernel if it exceeds ``_KEPT_BYTES``. Call it between tasks."""
    libc = _glibc()
    if libc is None:
        return
    info = libc.mallinfo2()
    # Free bytes inside the heap are counted even after they were returned to the kernel.
    if info.fordblks > _KEPT_BYTES and _resident() - info.uordblks > _KEPT_BYTES:
        libc.malloc_trim(0)


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@cache
def _glibc() -> ctypes.CDLL | None:
    """Return glibc if this is Linux and glibc has ``mallinfo2``, otherwise None."""
    if not Path("/proc/self/statm").exists():
        return None
    try:
        libc = ctypes.CDLL(None)
        libc.mallinfo2.restype = _MallocInfo
    except (AttributeError, OSError, TypeError):  # Windows raises TypeError
        return None
    return libc
