"""The options that say which tags are made by themselves, and how long tags are kept.

Declared like all options of a table, and read as part of ``TableOptions``.
"""

from __future__ import annotations

from lakeformat.paimon.options.kinds import (
    BOOLEAN,
    DURATION,
    OPTIONAL_DURATION,
    OPTIONAL_NUMBER,
    TEXT,
    TIME_ZONE,
    one_of,
)
from lakeformat.paimon.options.option import Option

__all__ = ["TagOptions"]


class TagOptions:
    """Tags that are made by themselves; writers leave them to ``tags.create_due``."""

    tag_automatic_creation = Option(
        "tag.automatic-creation",
        one_of("none", "process-time", "watermark", "batch"),
        "none",
        "Which tags `tags.create_due` makes: none, one per period by commit time or by watermark, "
        "or one of the newest snapshot; other engines' writers make them as they commit.",
    )
    tag_creation_period = Option(
        "tag.creation-period",
        one_of("daily", "hourly", "two-hours"),
        "daily",
        "Of which period an automatic tag shows the end.",
    )
    tag_creation_period_duration_millis = Option(
        "tag.creation-period-duration",
        OPTIONAL_DURATION,
        "",
        "A period of any length instead of tag.creation-period; empty for none.",
    )
    tag_creation_delay_millis = Option(
        "tag.creation-delay",
        DURATION,
        "0 ms",
        "How long after the end of a period its tag is made, for data that comes late; shorter "
        "than the period.",
    )
    tag_period_formatter = Option(
        "tag.period-formatter",
        one_of("with_dashes", "without_dashes", "without_dashes_and_spaces"),
        "with_dashes",
        "How the period is written in a tag's name: 2024-01-31 23, 20240131 23 or 2024013123.",
    )
    tag_automatic_completion = Option(
        "tag.automatic-completion",
        BOOLEAN,
        "false",
        "Whether periods without a commit get their tag from the commits that follow, one each.",
    )
    tag_num_retained_max = Option(
        "tag.num-retained-max",
        OPTIONAL_NUMBER,
        "",
        "How many automatic tags are kept; with 'batch' tags of any kind count. Empty for all.",
    )
    tag_default_time_retained_millis = Option(
        "tag.default-time-retained",
        OPTIONAL_DURATION,
        "",
        "How long a tag is kept for which nobody says it; empty for ever.",
    )
    tag_time_expire_enabled = Option(
        "tag.time-expire-enabled",
        BOOLEAN,
        "true",
        "Whether `tags.expire` deletes tags whose time is over.",
    )
    tag_batch_customized_name = Option(
        "tag.batch.customized-name",
        TEXT,
        "",
        "The name of the tag of 'batch'; empty is batch-write- and the date.",
    )
    tag_create_success_file = Option(
        "tag.create-success-file",
        BOOLEAN,
        "false",
        "Whether a tag comes with a file tag/tag-success-file/<tag>_SUCCESS, for programs that "
        "wait for it.",
    )
    sink_process_time_zone = Option(
        "sink.process-time-zone",
        TIME_ZONE,
        "UTC",
        "The time zone of commit times in the names of automatic tags; other engines take the "
        "zone of their machine where it is not set.",
    )
    sink_watermark_time_zone = Option(
        "sink.watermark-time-zone",
        TIME_ZONE,
        "UTC",
        "The time zone of watermarks in the names of automatic tags.",
    )
