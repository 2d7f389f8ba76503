"""The options that say how long snapshots and changelogs are kept, and for whom.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    DURATION,
    OPTIONAL_DURATION,
    OPTIONAL_NUMBER,
    whole_number,
)
from lakeformat.paimon.options.option import Group, Option

__all__ = ["ExpiryOptions"]


class ExpiryOptions:
    """What an expiry of snapshots and changelogs leaves, and how it removes files."""

    snapshot_num_retained_min = Option(
        "snapshot.num-retained.min",
        whole_number(1, 2**31 - 1),
        "10",
        "How many of the newest snapshots an expiry leaves, however old they are.",
    )
    snapshot_num_retained_max = Option(
        "snapshot.num-retained.max",
        whole_number(1, 2**31 - 1),
        str(2**31 - 1),
        "How many of the newest snapshots an expiry leaves at most, however young they are.",
    )
    snapshot_time_retained_millis = Option(
        "snapshot.time-retained",
        DURATION,
        "1 h",
        "How long a snapshot is kept after the next one has taken its place.",
    )
    snapshot_expire_limit = Option(
        "snapshot.expire.limit",
        whole_number(1, 2**31 - 1),
        "50",
        "How many snapshots, and how many changelogs, one expiry removes at most; raise it to "
        "catch up after a long time without.",
    )
    snapshot_clean_empty_directories = Option(
        "snapshot.clean-empty-directories",
        BOOLEAN,
        "false",
        "Whether an expiry removes the directories of buckets and partitions that it empties.",
        older_keys=("snapshot.expire.clean-empty-directories",),
    )
    changelog_num_retained_min = Option(
        "changelog.num-retained.min",
        OPTIONAL_NUMBER,
        "",
        "How many of the newest snapshots keep their changelog at least; empty is as the "
        "snapshots themselves. More than those makes changelogs outlive them.",
    )
    changelog_num_retained_max = Option(
        "changelog.num-retained.max",
        OPTIONAL_NUMBER,
        "",
        "How many of the newest snapshots keep their changelog at most; empty is as the "
        "snapshots themselves. More than those makes changelogs outlive them.",
    )
    changelog_time_retained_millis = Option(
        "changelog.time-retained",
        OPTIONAL_DURATION,
        "",
        "How long a changelog is kept; empty is as the snapshots. Longer than those makes "
        "changelogs outlive them.",
    )
    consumer_expiration_time_millis = Option(
        "consumer.expiration-time",
        OPTIONAL_DURATION,
        "",
        "After how long without progress an expiry forgets a consumer; empty is never.",
    )
    consumer_changelog_only = Option(
        "consumer.changelog-only",
        BOOLEAN,
        "false",
        "Whether consumers keep changelogs from expiring, and snapshots no more; it counts where "
        "changelogs outlive snapshots.",
    )
    file_operation_threads = Option(
        "file-operation.thread-num",
        OPTIONAL_NUMBER,
        "",
        "How many files are removed at a time; empty is four per processor.",
        group=Group.PERFORMANCE,
        older_keys=("delete-file.thread-num",),
    )
