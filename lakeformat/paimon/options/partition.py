"""The options that say when partitions expire and how they are marked as done.

Declared like all options of a table, and read as part of ``TableOptions``.
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
"""Every action the format knows."""


def _actions(text: str) -> tuple[str, ...]:
    found = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    unknown = [word for word in found if word not in MARK_DONE_ACTIONS]
    if unknown or not found:
        raise ValueError(f"the actions are {', '.join(MARK_DONE_ACTIONS)}")
    return found


class PartitionOptions:
    """How old a partition may get, how its age is told, and what says that it is complete."""

    partition_expiration_time_millis = Option(
        "partition.expiration-time",
        OPTIONAL_DURATION,
        "",
        "How old a partition gets before an expiry of partitions deletes its rows; empty for ever.",
    )
    partition_expiration_strategy = Option(
        "partition.expiration-strategy",
        one_of("values-time", "update-time"),
        "values-time",
        "Whether the age of a partition is told by its values, or by when it was written to last.",
    )
    partition_expiration_max_num = Option(
        "partition.expiration-max-num",
        whole_number(1, 2**31 - 1),
        "100",
        "How many partitions one expiry deletes at most; the others go with the next.",
        group=Group.PERFORMANCE,
    )
    partition_expiration_batch_size = Option(
        "partition.expiration-batch-size",
        OPTIONAL_NUMBER,
        "",
        "How many partitions one commit of an expiry deletes; empty is all of them. Smaller is "
        "more commits, each of them shorter.",
        group=Group.PERFORMANCE,
    )
    partition_timestamp_pattern = Option(
        "partition.timestamp-pattern",
        TEXT,
        "",
        "How the values of a partition make a time, such as '$dt $hour:00:00'; empty is the first "
        "partition column.",
    )
    partition_timestamp_formatter = Option(
        "partition.timestamp-formatter",
        TEXT,
        "",
        "How that time is written, as Java's DateTimeFormatter has it: 'yyyyMMdd'; empty is "
        "'yyyy-MM-dd HH:mm:ss' or 'yyyy-MM-dd'.",
    )
    partition_mark_done_action = Option(
        "partition.mark-done-action",
        Kind("actions with commas between", _actions),
        "success-file",
        "What marks a partition as done: 'success-file' and 'done-partition'; 'mark-event', "
        "'http-report' and 'custom' are for other engines and refused here when a partition is "
        "marked.",
    )
