# SPDX-License-Identifier: Apache-2.0
"""The options for the retention of snapshots and changelogs.

``TableOptions`` inherits these options.
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
    """Options for the snapshots and changelogs that an expiry keeps, and for deleting files."""

    snapshot_num_retained_min = Option(
        "snapshot.num-retained.min",
        whole_number(1, 2**31 - 1),
        "10",
        "The least number of newest snapshots that an expiry keeps, however old they are.",
    )
    snapshot_num_retained_max = Option(
        "snapshot.num-retained.max",
        whole_number(1, 2**31 - 1),
        str(2**31 - 1),
        "The most snapshots that an expiry keeps, however young they are; snapshots that a "
        "consumer needs are kept, too. If the number is below snapshot.num-retained.min, expiries "
        "fail: lower that option, too.",
    )
    snapshot_time_retained_millis = Option(
        "snapshot.time-retained",
        DURATION,
        "1 h",
        "How long a snapshot is kept after the next one replaced it.",
    )
    snapshot_expire_limit = Option(
        "snapshot.expire.limit",
        whole_number(1, 2**31 - 1),
        "50",
        "The most snapshots, and the most changelogs, that one expiry deletes; raise it to catch "
        "up after a long time without expiry.",
    )
    snapshot_clean_empty_directories = Option(
        "snapshot.clean-empty-directories",
        BOOLEAN,
        "false",
        "An expiry, a removal of orphan files and a deletion of tags also delete directories of "
        "buckets and partitions that have become empty.",
        older_keys=("snapshot.expire.clean-empty-directories",),
    )
    changelog_num_retained_min = Option(
        "changelog.num-retained.min",
        OPTIONAL_NUMBER,
        "",
        "The least number of newest snapshots whose changelog is kept; empty: the number in "
        "snapshot.num-retained.min. A larger number keeps changelogs longer than snapshots.",
    )
    changelog_num_retained_max = Option(
        "changelog.num-retained.max",
        OPTIONAL_NUMBER,
        "",
        "The largest number of snapshots whose changelog is kept; empty: the number in "
        "snapshot.num-retained.max. A larger number keeps changelogs longer than snapshots.",
    )
    changelog_time_retained_millis = Option(
        "changelog.time-retained",
        OPTIONAL_DURATION,
        "",
        "How long a changelog is kept; empty: the time in snapshot.time-retained. A longer time "
        "keeps changelogs longer than snapshots.",
    )
    consumer_expiration_time_millis = Option(
        "consumer.expiration-time",
        OPTIONAL_DURATION,
        "",
        "Time without progress after which an expiry deletes a consumer; empty: never.",
    )
    consumer_changelog_only = Option(
        "consumer.changelog-only",
        BOOLEAN,
        "false",
        "Consumers protect changelogs from expiry, but not snapshots; only used if changelogs are "
        "kept longer than snapshots.",
    )
    file_operation_threads = Option(
        "file-operation.thread-num",
        OPTIONAL_NUMBER,
        "",
        "Number of files that are deleted, listed or read at the same time. Empty: 16 for "
        "the search for orphan files and missing files, otherwise four per processor.",
        group=Group.PERFORMANCE,
        older_keys=("delete-file.thread-num",),
    )
