# SPDX-License-Identifier: Apache-2.0
"""The settings of universal compaction, which choose the sorted runs to compact."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeformat.paimon.options import TableOptions

__all__ = ["PickSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PickSettings:
    """The table options of universal compaction, and the time of the plan."""

    now: datetime
    """The local time of the plan; files record their creation as local time."""
    trigger: int = 5
    size_amplification_percent: int = 200
    size_ratio: int = 1
    """The size ratio in percent; in off-peak hours it includes ``compaction.offpeak-ratio``."""
    optimization_interval_millis: int | None = None
    total_size_threshold: int | None = None
    incremental_size_threshold: int | None = None

    @classmethod
    def of_options(cls, options: TableOptions, now: datetime) -> PickSettings:
        return cls(
            now=now,
            trigger=options.compaction_trigger,
            size_amplification_percent=options.compaction_max_size_amplification_percent,
            size_ratio=options.compaction_size_ratio + _off_peak_ratio(options, now.hour),
            optimization_interval_millis=options.compaction_optimization_interval_millis,
            total_size_threshold=options.compaction_total_size_threshold_bytes,
            incremental_size_threshold=options.compaction_incremental_size_threshold_bytes,
        )


def _off_peak_ratio(options: TableOptions, hour: int) -> int:
    start, end = options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour
    if -1 in (start, end) or start == end:
        return 0
    is_within = start <= hour < end if start < end else hour >= start or hour < end
    return options.compaction_offpeak_ratio if is_within else 0
