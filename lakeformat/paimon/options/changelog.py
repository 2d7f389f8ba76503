"""The options that say which changes are kept as changelog, and how compactions find them.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import BOOLEAN, COLUMN_NAMES, OPTIONAL_NUMBER, one_of
from lakeformat.paimon.options.option import Group, Option

__all__ = ["ChangelogOptions"]


class ChangelogOptions:
    """Who makes a table's changelog, and what is left out of it."""

    changelog_producer = Option(
        "changelog-producer",
        one_of("none", "input", "lookup", "full-compaction"),
        "none",
        "Which changes are kept as changelog files: none, the rows as they came in, what every "
        "compaction of new rows finds replaced, or what differs between full compactions.",
    )
    changelog_row_deduplicate = Option(
        "changelog-producer.row-deduplicate",
        BOOLEAN,
        "false",
        "Whether lookup and full-compaction tell nothing of updates that change no value.",
    )
    changelog_row_deduplicate_ignore_fields = Option(
        "changelog-producer.row-deduplicate-ignore-fields",
        COLUMN_NAMES,
        "",
        "Columns whose change alone is no change for changelog-producer.row-deduplicate.",
    )
    streaming_read_overwrite = Option(
        "streaming-read-overwrite",
        BOOLEAN,
        "false",
        "Whether changes and streams of a primary-key table include overwrites: -D for each row "
        "that went, +I for each that came.",
    )
    streaming_read_append_overwrite = Option(
        "streaming-read-append-overwrite",
        BOOLEAN,
        "false",
        "Whether changes and streams of an append table include the rows that overwrites add.",
    )
    force_lookup = Option(
        "force-lookup",
        BOOLEAN,
        "false",
        "Whether every compaction takes all of level 0 and looks its keys up, without a changelog.",
        mutable=False,
    )
    full_compaction_delta_commits = Option(
        "full-compaction.delta-commits",
        OPTIONAL_NUMBER,
        "",
        "After how many commits other engines' writers compact a bucket in full; ours never "
        "compact: run compactions of strategy 'full' instead.",
        group=Group.PERFORMANCE,
    )
    deletion_vectors_bitmap64 = Option(
        "deletion-vectors.bitmap64",
        BOOLEAN,
        "false",
        "Whether new deletion vectors have 64 bits, for files of more than 2^31 - 1 rows; some "
        "readers know only those of 32.",
    )
