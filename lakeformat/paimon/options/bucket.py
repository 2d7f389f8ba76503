"""The options of tables that give keys a bucket by themselves, at once or later.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, OPTIONAL_NUMBER, SIZE, Kind, whole_number
from lakeformat.paimon.options.option import Option

__all__ = ["BucketOptions"]

_MOST_BUCKETS = 32_767
"""Numbers of buckets have two bytes in other engines' indexes."""


def _limit(text: str) -> int:
    value = whole_number(-1, _MOST_BUCKETS).parse(text)
    if value == 0:
        raise ValueError("out of range")
    return value


class BucketOptions:
    """How many keys go to a bucket, and how many buckets there are."""

    dynamic_bucket_target_row_num = Option(
        "dynamic-bucket.target-row-num",
        whole_number(1, 2**63 - 1),
        "2000000",
        "With 'bucket' = '-1' and a primary key: with so many keys a bucket is full, and new keys "
        "go to the next one.",
    )
    postpone_default_bucket_num = Option(
        "postpone.default-bucket-num",
        OPTIONAL_NUMBER,
        "",
        "With 'bucket' = '-2': how many buckets a compaction gives a partition that has none yet; "
        "empty leaves that to the rows that wait.",
    )
    postpone_target_row_num = Option(
        "postpone.target-row-num-per-bucket",
        OPTIONAL_NUMBER,
        "",
        "With 'bucket' = '-2' and no default: for so many waiting rows a new partition gets a "
        "bucket; empty leaves that to their bytes.",
    )
    postpone_target_size_bytes = Option(
        "postpone.target-size-per-bucket",
        SIZE,
        "1 gb",
        "With 'bucket' = '-2' and no default: for so many bytes of waiting rows a new partition "
        "gets a bucket.",
    )
    postpone_merge_on_read = Option(
        "postpone.merge-on-read",
        BOOLEAN,
        "false",
        "With 'bucket' = '-2': whether batch reads see rows that wait for a bucket, merged in "
        "memory partition by partition, or wait for a compaction too.",
    )
    postpone_max_buckets = Option(
        "postpone.batch-write-fixed-bucket.max-parallelism",
        whole_number(1, _MOST_BUCKETS),
        "2048",
        "With 'bucket' = '-2' and no default: so many buckets a new partition gets at most.",
    )
    dynamic_bucket_max_buckets = Option(
        "dynamic-bucket.max-buckets",
        Kind(f"1 to {_MOST_BUCKETS}, or -1", _limit),
        "-1",
        "With 'bucket' = '-1' and a primary key: how many buckets a partition has at most; once "
        "all are full, new keys go to any of them. -1 is as many as the format can count.",
    )
