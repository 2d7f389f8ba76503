# SPDX-License-Identifier: Apache-2.0
"""The memory allocator that merges use."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["merge_memory"]


def merge_memory() -> pa.MemoryPool:
    """Return the system's memory allocator, which reuses the memory of one merge for the next.

    Arrow's own allocator returns memory to the kernel, which clears every page again. That takes a
    tenth of the time of a merge.
    """
    return pa.system_memory_pool()
