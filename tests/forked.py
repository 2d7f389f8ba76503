"""Processes that begin at one moment, and import what a commit needs only once."""

from __future__ import annotations

import importlib
import os
import sys

__all__ = ["forked"]

_MODULES = ("pandas", "lakeformat.paimon.commit.commit", "lakeformat.paimon.table.writes")


def forked(processes: int) -> int:
    """Return in each of so many new processes, with its number; this one waits and ends.

    It ends with 1 if one of them fails.
    """
    for name in _MODULES:
        importlib.import_module(name)
    for number in range(processes):
        if not os.fork():
            return number
    sys.exit(any([os.wait()[1] for _ in range(processes)]))
