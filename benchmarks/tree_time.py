"""The CPU time of this process and of all its descendants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cpu_seconds_between", "tree_ticks"]

_PARENT, _TIMES = 1, slice(11, 15)
"""The positions of fields in ``/proc/<pid>/stat``, counted after the name: the id of the parent,
and the CPU times of the process and of its ended children.
"""


def tree_ticks() -> dict[int, int]:
    """Return the CPU ticks so far of this process and each descendant, by process id. This works
    only on Linux.

    The ticks of a process include those of ended children for which it has waited.

    Spark works in a JVM and in Python workers, which ``time.process_time`` does not include.
    """
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            content = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # the process has ended
            continue
        fields = content.rpartition(")")[2].split()  # a name may contain blanks
        ticks[int(entry.name)] = sum(map(int, fields[_TIMES]))
        children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found, used = [os.getpid()], {}
    while found:
        process = found.pop()
        used[process] = ticks.get(process, 0)
        found += children.get(process, ())
    return used


def cpu_seconds_between(before: Mapping[int, int], after: Mapping[int, int]) -> float:
    """Return the CPU time between two measurements.

    The parent of Spark's Python workers does not wait for their end. So if a worker ends between
    the measurements, its time since the first measurement is not counted.
    """
    used = sum(ticks - before.get(process, 0) for process, ticks in after.items())
    return used / os.sysconf("SC_CLK_TCK")
