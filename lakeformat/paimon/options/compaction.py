"""The options that say when and how files are compacted.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    OPTIONAL_DURATION,
    OPTIONAL_NUMBER,
    OPTIONAL_SIZE,
    RATIO,
    Kind,
    whole_number,
)
from lakeformat.paimon.options.option import Group, Option

__all__ = ["CompactionOptions"]

_MOST_LEVELS = 1_000_000
"""Any level of 32 bits is read; these are as many as the compaction trigger can ask for."""
_LEVELS: Kind[int | None] = Kind(
    f"{whole_number(1, _MOST_LEVELS).name}, or empty",
    lambda text: whole_number(1, _MOST_LEVELS).parse(text) if text else None,
)


class CompactionOptions:
    """Which runs are compacted together, and which files are left as they are."""

    compaction_trigger = Option(
        "num-sorted-run.compaction-trigger",
        whole_number(1, 1_000_000),
        "5",
        "How many sorted runs of a bucket start a compaction; fewer is faster to read.",
        group=Group.PERFORMANCE,
    )
    stop_trigger = Option(
        "num-sorted-run.stop-trigger",
        OPTIONAL_NUMBER,
        "",
        "At how many sorted runs of a bucket other engines' writers wait for a compaction; empty "
        "is three more than the compaction trigger. Writers here never wait, and health calls so "
        "many unhealthy.",
        group=Group.PERFORMANCE,
    )
    num_levels = Option(
        "num-levels",
        _LEVELS,
        "",
        "Number of levels of a primary-key table; empty is one more than the compaction trigger.",
        group=Group.PERFORMANCE,
    )
    compaction_max_size_amplification_percent = Option(
        "compaction.max-size-amplification-percent",
        whole_number(0, 1_000_000),
        "200",
        "How much larger than its last run the others of a bucket may be, in percent, before all "
        "are compacted into one.",
        group=Group.PERFORMANCE,
    )
    compaction_size_ratio = Option(
        "compaction.size-ratio",
        whole_number(0, 1_000_000),
        "1",
        "By how many percent the next run may be larger than those before it to be compacted with "
        "them.",
        group=Group.PERFORMANCE,
    )
    compaction_offpeak_start_hour = Option(
        "compaction.offpeak.start.hour",
        whole_number(-1, 23),
        "-1",
        "The hour at which off-peak begins, by the clock of the machine that plans; -1 for never.",
        group=Group.PERFORMANCE,
    )
    compaction_offpeak_end_hour = Option(
        "compaction.offpeak.end.hour",
        whole_number(-1, 23),
        "-1",
        "The hour at which off-peak ends, not counted in; -1 for never.",
        group=Group.PERFORMANCE,
    )
    compaction_offpeak_ratio = Option(
        "compaction.offpeak-ratio",
        whole_number(0, 100),
        "0",
        "What is added to compaction.size-ratio off-peak.",
        group=Group.PERFORMANCE,
    )
    compaction_optimization_interval_millis = Option(
        "compaction.optimization-interval",
        OPTIONAL_DURATION,
        "",
        "How long after a bucket's last full compaction the next one is due; empty for never.",
        group=Group.PERFORMANCE,
    )
    compaction_total_size_threshold_bytes = Option(
        "compaction.total-size-threshold",
        OPTIONAL_SIZE,
        "",
        "Buckets smaller than this are always compacted in full; empty for none.",
        group=Group.PERFORMANCE,
    )
    compaction_incremental_size_threshold_bytes = Option(
        "compaction.incremental-size-threshold",
        OPTIONAL_SIZE,
        "",
        "Once so much of a bucket is outside its highest level it is compacted in full; empty for "
        "never.",
        group=Group.PERFORMANCE,
    )
    compaction_force_up_level_0 = Option(
        "compaction.force-up-level-0",
        BOOLEAN,
        "false",
        "Whether every compaction takes all files of level 0.",
        group=Group.PERFORMANCE,
    )
    compaction_force_rewrite_all_files = Option(
        "compaction.force-rewrite-all-files",
        BOOLEAN,
        "false",
        "Whether a full compaction also rewrites files that could stay as they are.",
        group=Group.PERFORMANCE,
    )
    compaction_small_file_ratio = Option(
        "compaction.small-file-ratio",
        RATIO,
        "0.7",
        "Files smaller than this part of the target size are small: they are written together "
        "with their neighbours.",
        group=Group.PERFORMANCE,
    )
    compaction_min_file_num = Option(
        "compaction.min.file-num",
        whole_number(2, 1_000_000),
        "5",
        "How many small files of an append table are worth a compaction.",
        group=Group.PERFORMANCE,
    )
    compaction_file_num_limit = Option(
        "compaction.file-num-limit",
        whole_number(2, 100_000_000),
        "100000",
        "How many files of an append table one compaction takes; what is left waits for the next "
        "one.",
        group=Group.PERFORMANCE,
    )
    compaction_delete_ratio_threshold = Option(
        "compaction.delete-ratio-threshold",
        RATIO,
        "0.2",
        "Files of an append table with more deleted rows than this part are compacted whatever "
        "their size.",
        group=Group.PERFORMANCE,
    )
    bucket_append_ordered = Option(
        "bucket-append-ordered",
        BOOLEAN,
        "true",
        "Whether rows of a bucket of an append table keep the order they were written in; false "
        "allows a compaction to sort them.",
    )
    zorder_var_length_contribution = Option(
        "zorder.var-length-contribution",
        whole_number(1, 1024),
        "8",
        "How many bytes of a text or binary value count where rows are sorted along a Z-order "
        "curve; along a Hilbert curve the first 8 of those.",
        group=Group.PERFORMANCE,
    )
