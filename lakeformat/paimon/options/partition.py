# SPDX-License-Identifier: Apache-2.0
"""The options for the expiry of partitions and for marking them as done.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    OPTIONAL_DURATION,
    OPTIONAL_NUMBER,
    TEXT,
    Kind,
    one_of,
    whole_number,
)
from lakeformat.paimon.options.option import Group, Option

__all__ = ["PartitionOptions"]

MARK_DONE_ACTIONS = ("success-file", "done-partition", "mark-event", "http-report", "custom")
"""Every action of the format; this library does not support all of them."""


def _actions(text: str) -> tuple[str, ...]:
    found = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    unknown = [word for word in found if word not in MARK_DONE_ACTIONS]
    if unknown or not found:
        raise ValueError(f"the actions are {', '.join(MARK_DONE_ACTIONS)}")
    return found


class PartitionOptions:
    """Options for the age of partitions, for their expiry, and for marking them as done."""

    partition_expiration_time_millis = Option(
        "partition.expiration-time",
        OPTIONAL_DURATION,
        "",
        "Age at which an expiry of partitions deletes the rows of a partition; empty: never.",
    )
    partition_expiration_strategy = Option(
        "partition.expiration-strategy",
        one_of("values-time", "update-time"),
        "values-time",
        "The age of a partition is given by its values (values-time), or by the time of its newest "
        "file, which a compaction may have written (update-time).",
    )
    partition_expiration_max_num = Option(
        "partition.expiration-max-num",
        whole_number(1, 2**31 - 1),
        "100",
        "The most partitions that one expiry deletes. If more partitions have expired, later "
        "expiries delete the rest.",
        group=Group.PERFORMANCE,
    )
    partition_expiration_batch_size = Option(
        "partition.expiration-batch-size",
        OPTIONAL_NUMBER,
        "",
        "The most partitions that one commit of an expiry deletes; empty: all. A smaller number "
        "means more commits, each of them shorter.",
        group=Group.PERFORMANCE,
    )
    partition_timestamp_pattern = Option(
        "partition.timestamp-pattern",
        TEXT,
        "",
        "Pattern that combines a partition's values into a time, such as '$dt $hour:00:00'; empty: "
        "the first partition column.",
    )
    partition_timestamp_formatter = Option(
        "partition.timestamp-formatter",
        TEXT,
        "",
        "Format of the time in the values of a partition, in the syntax of Java's "
        "DateTimeFormatter, such as 'yyyyMMdd'; empty: 'yyyy-MM-dd HH:mm:ss' or 'yyyy-MM-dd'.",
    )
    partition_mark_done_action = Option(
        "partition.mark-done-action",
        Kind("actions with commas between", _actions),
        "success-file",
        "Marks of a partition that is done. 'success-file': a file `_SUCCESS` in its directory. "
        "'done-partition': an empty directory beside it, with the same name and the ending "
        "`.done`. 'mark-event', 'http-report' and 'custom' are for other engines; with them, "
        "marking a partition here fails.",
    )
