# SPDX-License-Identifier: Apache-2.0
"""The options of buckets: their number, their size, and the dynamic assignment of keys.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    BUCKETS,
    COLUMN_NAMES,
    OPTIONAL_NUMBER,
    SIZE,
    Kind,
    one_of,
    whole_number,
)
from lakeformat.paimon.options.option import Option

__all__ = ["BucketOptions"]

_MOST_BUCKETS = 32_767
"""The largest number of buckets: indexes of other engines store a bucket number in two bytes."""


def _limit(text: str) -> int:
    value = whole_number(-1, _MOST_BUCKETS).parse(text)
    if value == 0:
        raise ValueError("out of range")
    return value


class BucketOptions:
    """Options for the number of buckets, and for the number of rows in each bucket."""

    dynamic_bucket_target_row_num = Option(
        "dynamic-bucket.target-row-num",
        whole_number(1, 2**63 - 1),
        "2000000",
        "With 'bucket' = '-1' and a primary key: a bucket with this number of keys is full; new "
        "keys are then added to another bucket.",
    )
    postpone_default_bucket_num = Option(
        "postpone.default-bucket-num",
        OPTIONAL_NUMBER,
        "",
        "With 'bucket' = '-2': number of buckets that a compaction gives to a new partition; "
        "empty: derived from the postponed rows.",
    )
    postpone_target_row_num = Option(
        "postpone.target-row-num-per-bucket",
        OPTIONAL_NUMBER,
        "",
        "With 'bucket' = '-2' and no postpone.default-bucket-num: a new partition gets one bucket "
        "for this many postponed rows; empty: derived from their bytes.",
    )
    postpone_target_size_bytes = Option(
        "postpone.target-size-per-bucket",
        SIZE,
        "1 gb",
        "With 'bucket' = '-2', no postpone.default-bucket-num and no "
        "postpone.target-row-num-per-bucket: a new partition gets one bucket for this many bytes "
        "of postponed rows.",
    )
    postpone_merge_on_read = Option(
        "postpone.merge-on-read",
        BOOLEAN,
        "false",
        "With 'bucket' = '-2': batch reads include postponed rows, merged in memory partition by "
        "partition. false: reads see these rows after a compaction.",
    )
    postpone_max_buckets = Option(
        "postpone.batch-write-fixed-bucket.max-parallelism",
        whole_number(1, _MOST_BUCKETS),
        "2048",
        "With 'bucket' = '-2' and no postpone.default-bucket-num: the most buckets that a new "
        "partition gets.",
    )
    dynamic_bucket_max_buckets = Option(
        "dynamic-bucket.max-buckets",
        Kind(f"1 to {_MOST_BUCKETS}, or -1", _limit),
        "-1",
        "With 'bucket' = '-1' and a primary key: the most buckets of a partition; once all are "
        "full, new keys are added to any of them. -1: at most 32767; once all are full, a write "
        "of new keys fails.",
    )
    bucket = Option(
        "bucket",
        BUCKETS,
        "-1",
        "Number of buckets. -1: one for an append table, as many as needed for a primary-key "
        "table. -2: only for a primary-key table; new rows are postponed, and become visible when "
        "a compaction gives them a bucket. After the first snapshot, -1 and -2 cannot be changed; "
        "a positive number can be changed only to another positive number. After that change, run "
        "`lake rescale`.",
    )
    bucket_key = Option(
        "bucket-key",
        COLUMN_NAMES,
        "",
        "Columns that decide the bucket of a row. Unset: the primary key without the partition "
        "columns; append tables with a number of buckets need the option.",
        mutable=False,
    )
    bucket_function = Option(
        "bucket-function.type",
        one_of("default", "mod", "hive"),
        "default",
        "How the bucket key is mapped to a bucket: by hash, by remainder, or like Hive.",
        mutable=False,
    )
