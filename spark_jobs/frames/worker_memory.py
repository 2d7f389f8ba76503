"""Memory that a task gives back stays with its worker, for the next one.

Otherwise it goes to the kernel, which clears each page before the next has it: a tenth of the time.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import pyarrow as pa

from lakeformat.rows.memory import merge_memory

__all__ = ["give_back_too_much", "keep_memory"]

_KEPT_BYTES = 512 << 20
"""So much free memory a worker has at most when a task begins: more than most tasks give back."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The options of glibc's ``mallopt`` for how much is kept, and in how large pieces."""
_LARGEST_BYTES = 32 << 20
"""Older versions keep no larger pieces."""

_TOLD = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks"),
    *("fordblks", "keepcost"),
)


class _Told(ctypes.Structure):
    """What glibc's ``mallinfo2`` tells; ``fordblks`` are free bytes."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _TOLD)


def keep_memory() -> None:
    """Called once in a process, for all of its Arrow and numpy arrays."""
    libc = _glibc()
    if libc is None:
        return
    # Without the size of pieces, setting how much is kept would end that glibc adapts the size.
    if any(libc.mallopt(_MMAP_THRESHOLD, size) for size in (_KEPT_BYTES, _LARGEST_BYTES)):
        libc.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        pa.set_memory_pool(merge_memory())


def give_back_too_much() -> None:
    """Called between tasks."""
    libc = _glibc()
    if libc is None:
        return
    told = libc.mallinfo2()
    # Free bytes count as such also when they have been given back, inside the heap.
    if told.fordblks > _KEPT_BYTES and _resident() - told.uordblks > _KEPT_BYTES:
        libc.malloc_trim(0)


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is one that can be asked to keep memory."""
    if not Path("/proc/self/statm").exists():
        return None
    try:
        libc = ctypes.CDLL(None)
        libc.mallinfo2.restype = _Told
    except (AttributeError, OSError, TypeError):  # the last one on Windows
        return None
    return libc
