"""What a Python worker of Spark spends between tasks, kept small.

Before each task Spark has Python forget what it knows of directories, and read the whole directory
of each archive again: of PySpark's own once per package, 0.1 seconds of CPU. After each it collects
garbage, and looks through all modules there are. Together that took longer than a small task.
"""

from __future__ import annotations

import gc
import sys
from functools import cache
from zipimport import zipimporter

from spark_jobs.frames.worker_memory import give_back_too_much, keep_memory

__all__ = ["prepare_worker"]


def prepare_worker() -> None:
    """Called by each task as it begins, for the tasks after it in the same process."""
    _prepare_once()
    give_back_too_much()
    # Python makes them again where something is imported, from directories it still knows.
    archives = [
        place for place, found in sys.path_importer_cache.items() if isinstance(found, zipimporter)
    ]
    for place in archives:
        del sys.path_importer_cache[place]


@cache
def _prepare_once() -> None:
    # What tasks leave behind is garbage later. Python would count 15 ms to say that it is done.
    gc.freeze()
    keep_memory()
