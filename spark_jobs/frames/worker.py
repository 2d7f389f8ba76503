# SPDX-License-Identifier: Apache-2.0
"""Reduces the time that a Python worker of Spark spends between tasks.

Before each task, Spark clears Python's import caches, so that Python reads the table of contents of
each zip archive again. For PySpark's own archive, Python does this once for each package, which
takes 0.1 seconds of CPU. After each task, Spark collects garbage, which scans all Python objects.
These two pauses together took longer than a small task.
"""

from __future__ import annotations

import gc
import sys
from functools import cache
from zipimport import zipimporter

import pyarrow as pa

from lakeformat.rows.freed_memory import give_back_too_much, keep_freed_memory
from lakeformat.rows.memory import merge_memory

__all__ = ["prepare_worker"]


def prepare_worker() -> None:
    """Shorten the pauses before the next tasks of this Python worker, and give free memory back to
    the system.

    Each task calls this function at its start.
    """
    _prepare_once()
    give_back_too_much()
    # Python fills the cache again at the next import, from directories that it still knows.
    archives = [
        place for place, found in sys.path_importer_cache.items() if isinstance(found, zipimporter)
    ]
    for place in archives:
        del sys.path_importer_cache[place]


@cache
def _prepare_once() -> None:
    # Objects that exist now are excluded from garbage collection, which would take 15 ms.
    gc.freeze()
    if keep_freed_memory():
        pa.set_memory_pool(merge_memory())
