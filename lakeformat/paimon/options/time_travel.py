# SPDX-License-Identifier: Apache-2.0
"""The options that choose the snapshot of a scan if the caller chooses none.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import OPTIONAL_MILLIS, OPTIONAL_NUMBER, TEXT, one_of
from lakeformat.paimon.options.option import Option

__all__ = ["TimeTravelOptions"]


class TimeTravelOptions:
    """Options that choose what a scan reads: a snapshot, recent files, or changes.

    Besides ``scan.mode``, at most one of these options may be set.
    """

    scan_mode = Option(
        "scan.mode",
        one_of(
            "default",
            "latest-full",
            "full",
            "latest",
            "compacted-full",
            "from-timestamp",
            "from-creation-timestamp",
            "from-file-creation-time",
            "from-snapshot",
            "from-snapshot-full",
            "incremental",
        ),
        "default",
        "The snapshot that a scan reads if its call names none. default: another option `scan.…` "
        "or `incremental-…` decides; without one, the newest. latest-full, full and latest: the "
        "newest. compacted-full: that of the newest compaction. Each other mode also needs an "
        "option, such as scan.snapshot-id for from-snapshot. Streams of this library ignore the "
        "option: their call names the start.",
        older_keys=("log.scan",),
    )
    scan_snapshot_id = Option(
        "scan.snapshot-id",
        OPTIONAL_NUMBER,
        "",
        "A scan whose call names no snapshot reads the snapshot with this number.",
    )
    scan_tag_name = Option(
        "scan.tag-name",
        TEXT,
        "",
        "A scan whose call names no snapshot reads the snapshot of this tag.",
    )
    scan_version = Option(
        "scan.version",
        TEXT,
        "",
        "A scan whose call names no snapshot reads the tag with this name; if there is none, the "
        "snapshot with this number, or, for watermark-1700000000000, the first one that has "
        "reached this watermark.",
    )
    scan_timestamp = Option(
        "scan.timestamp",
        TEXT,
        "",
        "A scan whose call names no snapshot reads the newest snapshot at or before this time, "
        "such as 2024-01-31 10:00:00, in the time zone of the reading machine.",
    )
    scan_timestamp_millis = Option(
        "scan.timestamp-millis",
        OPTIONAL_MILLIS,
        "",
        "A scan whose call names no snapshot reads the newest snapshot at or before this time.",
        older_keys=("log.scan.timestamp-millis",),
    )
    scan_watermark = Option(
        "scan.watermark",
        OPTIONAL_MILLIS,
        "",
        "A scan whose call names no snapshot reads the oldest snapshot whose watermark is this or "
        "later.",
    )
    scan_file_creation_time_millis = Option(
        "scan.file-creation-time-millis",
        OPTIONAL_MILLIS,
        "",
        "A scan whose call names no snapshot reads only the files of the newest snapshot that "
        "were written at this time or later.",
    )
    scan_creation_time_millis = Option(
        "scan.creation-time-millis",
        OPTIONAL_MILLIS,
        "",
        "A scan whose call names no snapshot reads the oldest snapshot at or after this time. "
        "If no snapshot is before this time, or none is at or after it, the option works like "
        "scan.file-creation-time-millis.",
    )
    incremental_between = Option(
        "incremental-between",
        TEXT,
        "",
        "Scans of other engines return the changes between two snapshots or tags. In this library "
        "the option has another effect: a scan whose call names no snapshot is refused. To read "
        "changes, use Table.changes.",
    )
    incremental_between_timestamp = Option(
        "incremental-between-timestamp",
        TEXT,
        "",
        "Scans of other engines return the changes between two times. In this library the option "
        "has another effect: a scan whose call names no snapshot is refused. To read changes, use "
        "Table.changes.",
    )
    incremental_to_auto_tag = Option(
        "incremental-to-auto-tag",
        TEXT,
        "",
        "Scans of other engines return the changes between an automatic tag and the tag before "
        "it. In this library the option has another effect: a scan whose call names no snapshot "
        "is refused. To read changes, use Table.changes.",
    )
