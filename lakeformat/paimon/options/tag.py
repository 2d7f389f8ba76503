# SPDX-License-Identifier: Apache-2.0
"""The options for automatic tags and the retention of tags.

``TableOptions`` inherits these options.
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
    """Options for automatic tags, which ``Table.tags.create_due`` creates, and their retention."""

    tag_automatic_creation = Option(
        "tag.automatic-creation",
        one_of("none", "process-time", "watermark", "batch"),
        "none",
        "Tags that `lake tag create-due` creates. none: no tags. process-time: one per period, by "
        "commit time. watermark: one per period, by watermark. batch: a tag for the newest "
        "snapshot. Writers of other engines create these tags on commit.",
    )
    tag_creation_period = Option(
        "tag.creation-period",
        one_of("daily", "hourly", "two-hours"),
        "daily",
        "The period at whose end an automatic tag is created.",
    )
    tag_creation_period_duration_millis = Option(
        "tag.creation-period-duration",
        OPTIONAL_DURATION,
        "",
        "A period of any length instead of tag.creation-period; empty: none.",
    )
    tag_creation_delay_millis = Option(
        "tag.creation-delay",
        DURATION,
        "0 ms",
        "Delay of a tag after the end of its period, for late data; it must be shorter than the "
        "period.",
    )
    tag_period_formatter = Option(
        "tag.period-formatter",
        one_of("with_dashes", "without_dashes", "without_dashes_and_spaces"),
        "with_dashes",
        "Format of the period in a tag's name; an hour is 2024-01-31 23, 20240131 23 or "
        "2024013123. No effect with tag.creation-period = two-hours (2024-01-31 22) and with "
        "tag.creation-period-duration (202401312230).",
    )
    tag_automatic_completion = Option(
        "tag.automatic-completion",
        BOOLEAN,
        "false",
        "If several periods have ended before the next snapshot, this snapshot gets the tag of the "
        "oldest of them, the snapshot after it the tag of the second, and so on, until each "
        "has a tag. false: only the newest of these periods gets a tag.",
    )
    tag_num_retained_max = Option(
        "tag.num-retained-max",
        OPTIONAL_NUMBER,
        "",
        "The most automatic tags; `lake tag create-due` deletes older ones. Empty: all are kept. "
        "With tag.automatic-creation = batch, other tags count and are deleted, too.",
    )
    tag_default_time_retained_millis = Option(
        "tag.default-time-retained",
        OPTIONAL_DURATION,
        "",
        "How long a tag is kept if the call that creates it sets no time; then `lake tag expire` "
        "deletes it. Empty: for ever.",
    )
    tag_time_expire_enabled = Option(
        "tag.time-expire-enabled",
        BOOLEAN,
        "true",
        "`lake tag expire` deletes tags whose retention time has passed; false: it keeps them.",
    )
    tag_batch_customized_name = Option(
        "tag.batch.customized-name",
        TEXT,
        "",
        "Name of the tag that tag.automatic-creation = batch creates; empty: batch-write- and the "
        "date.",
    )
    tag_create_success_file = Option(
        "tag.create-success-file",
        BOOLEAN,
        "false",
        "A tag gets a file `tag/tag-success-file/<tag>_SUCCESS`, for programs that wait for the "
        "tag.",
    )
    sink_process_time_zone = Option(
        "sink.process-time-zone",
        TIME_ZONE,
        "UTC",
        "The time zone of commit times in the names of automatic tags; if unset, other engines "
        "use the zone of their machine.",
    )
    sink_watermark_time_zone = Option(
        "sink.watermark-time-zone",
        TIME_ZONE,
        "UTC",
        "The time zone of watermarks in the names of automatic tags.",
    )
