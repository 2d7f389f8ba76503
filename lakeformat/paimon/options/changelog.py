# SPDX-License-Identifier: Apache-2.0
"""The options for changelogs: their content, and how compactions produce them.

``TableOptions`` inherits these options.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, COLUMN_NAMES, OPTIONAL_NUMBER, one_of
from lakeformat.paimon.options.option import Group, Option

__all__ = ["ChangelogOptions"]


class ChangelogOptions:
    """Options for changelogs and their readers, and for the lookups and deletion vectors of
    compactions.
    """

    changelog_producer = Option(
        "changelog-producer",
        one_of("none", "input", "lookup", "full-compaction"),
        "none",
        "Content of the changelog files of a primary-key table. none: there are no such files. "
        "input: the rows as they were written. lookup: the changes that new rows make, "
        "written when these rows are compacted for the first time. full-compaction: the "
        "differences between full compactions.",
    )
    changelog_row_deduplicate = Option(
        "changelog-producer.row-deduplicate",
        BOOLEAN,
        "false",
        "The producers lookup and full-compaction omit updates that change no value.",
    )
    changelog_row_deduplicate_ignore_fields = Option(
        "changelog-producer.row-deduplicate-ignore-fields",
        COLUMN_NAMES,
        "",
        "Columns that changelog-producer.row-deduplicate ignores when it compares values.",
    )
    streaming_read_overwrite = Option(
        "streaming-read-overwrite",
        BOOLEAN,
        "false",
        "Changes and streams of a primary-key table include overwrites: -D for each deleted row, "
        "and each new row as +I, or as +U if it was written with this kind. Refused with the "
        "changelog-producers lookup and full-compaction.",
    )
    streaming_read_append_overwrite = Option(
        "streaming-read-append-overwrite",
        BOOLEAN,
        "false",
        "Changes and streams of an append table include the rows that overwrites add.",
    )
    force_lookup = Option(
        "force-lookup",
        BOOLEAN,
        "false",
        "Each compaction takes all files of level 0, and looks up their keys in higher levels, "
        "even if changelog-producer is not lookup.",
        mutable=False,
    )
    full_compaction_delta_commits = Option(
        "full-compaction.delta-commits",
        OPTIONAL_NUMBER,
        "",
        "Number of commits after which writers of other engines compact a bucket in full. If it "
        "is set, reads with scan.mode = compacted-full use only these full compactions and the "
        "compactions of batch jobs. Writers of this library never compact: run `lake compact` "
        "instead.",
        group=Group.PERFORMANCE,
    )
    deletion_vectors_bitmap64 = Option(
        "deletion-vectors.bitmap64",
        BOOLEAN,
        "false",
        "New deletion vectors have the 64-bit form, for files of more than 2^31 - 1 rows; some "
        "readers support only the 32-bit form.",
    )
