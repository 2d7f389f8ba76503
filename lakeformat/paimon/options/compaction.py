# SPDX-License-Identifier: Apache-2.0
"""The options that decide when files are compacted, and which files.

``TableOptions`` inherits these options.
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
"""The largest number of levels in this library; also the largest allowed compaction trigger."""
_LEVELS: Kind[int | None] = Kind(
    f"{whole_number(1, _MOST_LEVELS).name}, or empty",
    lambda text: whole_number(1, _MOST_LEVELS).parse(text) if text else None,
)


class CompactionOptions:
    """Options for the runs that are compacted together, and the files that are left unchanged."""

    compaction_trigger = Option(
        "num-sorted-run.compaction-trigger",
        whole_number(1, 1_000_000),
        "5",
        "If a bucket has this number of sorted runs, a minor compaction merges those of similar "
        "size, if there are any. If the bucket has more runs, a minor compaction always merges "
        "some of them. Fewer runs are faster to read.",
        group=Group.PERFORMANCE,
    )
    stop_trigger = Option(
        "num-sorted-run.stop-trigger",
        OPTIONAL_NUMBER,
        "",
        "Number of sorted runs of a bucket at which writers of other engines wait for a "
        "compaction; empty: three more than the compaction trigger. Writers of this library never "
        "wait, but from this number on `lake health` reports the bucket as unhealthy.",
        group=Group.PERFORMANCE,
    )
    num_levels = Option(
        "num-levels",
        _LEVELS,
        "",
        "Number of levels of a primary-key table; empty: one more than the compaction trigger.",
        group=Group.PERFORMANCE,
    )
    compaction_max_size_amplification_percent = Option(
        "compaction.max-size-amplification-percent",
        whole_number(0, 1_000_000),
        "200",
        "All sorted runs of a bucket are compacted into one if there are at least "
        "num-sorted-run.compaction-trigger of them, and if all but the oldest are together larger "
        "than this percentage of the oldest.",
        group=Group.PERFORMANCE,
    )
    compaction_size_ratio = Option(
        "compaction.size-ratio",
        whole_number(0, 1_000_000),
        "1",
        "A compaction takes the next older sorted run, too, if it is at most this many percent "
        "larger than all newer runs together.",
        group=Group.PERFORMANCE,
    )
    compaction_offpeak_start_hour = Option(
        "compaction.offpeak.start.hour",
        whole_number(-1, 23),
        "-1",
        "Hour at which off-peak begins, by the clock of the machine that plans a compaction; -1: "
        "never.",
        group=Group.PERFORMANCE,
    )
    compaction_offpeak_end_hour = Option(
        "compaction.offpeak.end.hour",
        whole_number(-1, 23),
        "-1",
        "Hour at which off-peak ends; this hour is not part of it. -1: never.",
        group=Group.PERFORMANCE,
    )
    compaction_offpeak_ratio = Option(
        "compaction.offpeak-ratio",
        whole_number(0, 100),
        "0",
        "Number added to compaction.size-ratio during off-peak, so that compactions merge more.",
        group=Group.PERFORMANCE,
    )
    compaction_optimization_interval_millis = Option(
        "compaction.optimization-interval",
        OPTIONAL_DURATION,
        "",
        "A bucket is compacted in full if its last full compaction is older than this; empty: "
        "never for this reason.",
        group=Group.PERFORMANCE,
    )
    compaction_total_size_threshold_bytes = Option(
        "compaction.total-size-threshold",
        OPTIONAL_SIZE,
        "",
        "A bucket of two or more sorted runs that is smaller than this is compacted in full; "
        "empty: never for this reason.",
        group=Group.PERFORMANCE,
    )
    compaction_incremental_size_threshold_bytes = Option(
        "compaction.incremental-size-threshold",
        OPTIONAL_SIZE,
        "",
        "A bucket is compacted in full when more bytes than this are outside its highest "
        "level; empty: never for this reason.",
        group=Group.PERFORMANCE,
    )
    compaction_force_up_level_0 = Option(
        "compaction.force-up-level-0",
        BOOLEAN,
        "false",
        "Every compaction takes all files of level 0.",
        group=Group.PERFORMANCE,
    )
    compaction_force_rewrite_all_files = Option(
        "compaction.force-rewrite-all-files",
        BOOLEAN,
        "false",
        "A full compaction also rewrites files that could be kept unchanged.",
        group=Group.PERFORMANCE,
    )
    compaction_small_file_ratio = Option(
        "compaction.small-file-ratio",
        RATIO,
        "0.7",
        "Files smaller than this fraction of the target size count as small: a compaction merges "
        "them with other files.",
        group=Group.PERFORMANCE,
    )
    compaction_min_file_num = Option(
        "compaction.min.file-num",
        whole_number(2, 1_000_000),
        "5",
        "Number of small files at which a minor compaction of an append table merges them. With "
        "'bucket' = '-1', fewer are enough if they fill a new file.",
        group=Group.PERFORMANCE,
    )
    compaction_file_num_limit = Option(
        "compaction.file-num-limit",
        whole_number(2, 100_000_000),
        "100000",
        "Once a compaction has taken this many files of an append table, it takes no further "
        "bucket; the next compaction takes the rest.",
        group=Group.PERFORMANCE,
    )
    compaction_delete_ratio_threshold = Option(
        "compaction.delete-ratio-threshold",
        RATIO,
        "0.2",
        "Files of an append table with more than this fraction of deleted rows are "
        "compacted, independent of their size.",
        group=Group.PERFORMANCE,
    )
    bucket_append_ordered = Option(
        "bucket-append-ordered",
        BOOLEAN,
        "true",
        "For append tables with a number of buckets: rows of a bucket keep the order of writing; "
        "false allows a compaction to sort them. With 'bucket' = '-1', sorting is always allowed.",
    )
    zorder_var_length_contribution = Option(
        "zorder.var-length-contribution",
        whole_number(1, 1024),
        "8",
        "Number of leading bytes of a text or binary value used to sort rows along a Z-order "
        "curve; a Hilbert curve uses at most 8.",
        group=Group.PERFORMANCE,
    )
