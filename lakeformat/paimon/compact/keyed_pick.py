# SPDX-License-Identifier: Apache-2.0
"""Chooses the sorted runs of a primary-key table's bucket to compact, without any I/O.

``append_pick`` chooses for append tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from lakeformat.paimon.compact.levels import Levels, SortedRun
from lakeformat.paimon.compact.settings import PickSettings
from lakeformat.types.byte_size import size

__all__ = ["Pick", "pick_all", "pick_level_0", "pick_universal"]


@dataclass(frozen=True, slots=True)
class Pick:
    """The sorted runs that a compaction merges into one run of ``output_level``, and the reason."""

    runs: tuple[SortedRun, ...]
    output_level: int
    reason: str


def pick_universal(levels: Levels, settings: PickSettings) -> Pick | None:
    """Return the runs that universal compaction picks by their sizes, number and age.

    Return None if no run is due.
    """
    return _unless_done(
        _early_full(levels, settings)
        or _too_large(levels, settings)
        or _similar_sizes(levels, settings)
        or _too_many(levels, settings)
    )


def pick_level_0(levels: Levels, settings: PickSettings) -> Pick | None:
    """Pick like ``pick_universal``; if no run is due, pick at least all of level 0.

    Return None if no run is due and level 0 is empty. This is for tables that look up old rows, or
    that have ``compaction.force-up-level-0``.
    """
    if picked := pick_universal(levels, settings):
        return picked
    fresh = len(levels.level_0)
    if not fresh:
        return None
    reason = f"{_many(fresh, 'file')} of level 0, which this table always compacts"
    return _unless_done(_from(levels, _extended(levels.runs, fresh, settings), reason))


def pick_all(levels: Levels) -> Pick | None:
    """Pick all runs, to merge them into the highest level; None if all files are on it already."""
    if all(run.level == levels.max_level for run in levels.runs):
        return None
    return _whole(levels, f"full compaction of {_many(len(levels.runs), 'sorted run')}")


def _early_full(levels: Levels, settings: PickSettings) -> Pick | None:
    if len(levels.runs) < 2:
        return None
    interval = settings.optimization_interval_millis
    if interval is not None and _is_due(levels, settings, interval):
        return _whole(levels, "no full compaction within 'compaction.optimization-interval'")
    total = settings.total_size_threshold
    if total is not None and levels.size < total:
        return _whole(
            levels,
            f"the bucket has {size(levels.size)}, less than 'compaction.total-size-threshold', "
            f"{size(total)}",
        )
    outside = sum(run.size for run in levels.runs if run.level != levels.max_level)
    limit = settings.incremental_size_threshold
    if limit is not None and outside > limit:
        return _whole(
            levels,
            f"{size(outside)} are not on the highest level, more than "
            f"'compaction.incremental-size-threshold', {size(limit)}",
        )
    return None


def _is_due(levels: Levels, settings: PickSettings, interval_millis: int) -> bool:
    """Return True if the last full compaction is too old.

    Its age is the age of the newest file on the highest level. Return True also if this level has
    no file with a creation time.
    """
    made = [
        file.creation_time
        for run in levels.runs
        if run.level == levels.max_level
        for file in run.files
        if file.creation_time is not None
    ]
    # Compared as numbers, because an interval may be too long for a timedelta.
    return not made or (settings.now - max(made)) / timedelta(milliseconds=1) > interval_millis


def _too_large(levels: Levels, settings: PickSettings) -> Pick | None:
    if len(levels.runs) < settings.trigger:
        return None
    *others, last = levels.runs
    extra = sum(run.size for run in others)
    percent = settings.size_amplification_percent
    if 100 * extra <= percent * last.size:
        return None
    return _whole(
        levels,
        f"size amplification: the newer runs have {size(extra)}, more than {percent}% of the "
        f"{size(last.size)} of the oldest run",
    )


def _similar_sizes(levels: Levels, settings: PickSettings) -> Pick | None:
    if len(levels.runs) < settings.trigger:
        return None
    count = _extended(levels.runs, 1, settings)
    return _from(levels, count, f"{count} runs of similar size") if count > 1 else None


def _too_many(levels: Levels, settings: PickSettings) -> Pick | None:
    surplus = len(levels.runs) - settings.trigger
    if surplus <= 0:
        return None
    count = _extended(levels.runs, surplus + 1, settings)
    return _from(levels, count, f"{len(levels.runs)} sorted runs, more than {settings.trigger}")


def _extended(runs: Sequence[SortedRun], count: int, settings: PickSettings) -> int:
    """Return the number of runs to take: ``count``, and those after them until one is too large.

    A run is too large if it exceeds the sum of all runs before it by more than ``size_ratio``
    percent. Once a run has been added, runs of level 0 and 1 are added at any size.
    """
    size, is_extended = sum(run.size for run in runs[:count]), False
    for run in runs[count:]:
        is_larger = size * (100 + settings.size_ratio) < run.size * 100
        if is_larger and not (is_extended and run.level <= 1):
            break
        size, count, is_extended = size + run.size, count + 1, True
    return count


def _from(levels: Levels, count: int, reason: str) -> Pick:
    """Pick the first ``count`` runs, and more if they would otherwise be merged into level 0.

    The output level is 1 less than the level of the first run that is not picked. But if that run
    is on level 0 or 1, the next runs are picked too, up to the first one above level 0; then the
    level of this last run is the output level. If all runs are picked, the output level is the
    highest level.
    """
    runs = levels.runs
    output = max(runs[count].level - 1, 0) if count < len(runs) else levels.max_level
    while output == 0 and count < len(runs):  # compactions never write to level 0
        output = runs[count].level
        count += 1
    if count == len(runs):
        return _whole(levels, reason)
    return Pick(runs[:count], output, reason)


def _whole(levels: Levels, reason: str) -> Pick:
    return Pick(levels.runs, levels.max_level, reason)


def _unless_done(pick: Pick | None) -> Pick | None:
    files = [file for run in pick.runs for file in run.files] if pick else []
    if pick is None or not files:
        return None
    return None if len(files) == 1 and files[0].level == pick.output_level else pick


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
