# SPDX-License-Identifier: Apache-2.0
"""``$tags``: names for snapshots."""

from __future__ import annotations

from datetime import timedelta

from lakeformat.paimon.metadata.tag import Tag, read_tags
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["TAGS", "duration_text"]

MICROS_PER_SECOND = 1_000_000
SECONDS_PER_MINUTE = 60
MINUTES_PER_HOUR = 60


def duration_text(duration: timedelta) -> str:
    """Return a duration as Java prints it: ``PT24H``, ``PT1M30.5S``."""
    micros = duration // timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    seconds, micros = divmod(abs(micros), MICROS_PER_SECOND)
    minutes, seconds = divmod(seconds, SECONDS_PER_MINUTE)
    hours, minutes = divmod(minutes, MINUTES_PER_HOUR)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    rest = f"{sign}{seconds}{fraction}S" if seconds or micros else ""
    parts = [f"{sign}{hours}H" if hours else "", f"{sign}{minutes}M" if minutes else "", rest]
    return "PT" + ("".join(parts) or "0S")


def _tags(source: Source) -> list[Tag]:
    return read_tags(source.handle.storage, source.handle.layout)


def _retained(tag: Tag) -> str | None:
    return None if tag.time_retained is None else duration_text(tag.time_retained)


TAGS = declare(
    "tags",
    _tags,
    [
        column("tag_name", "STRING NOT NULL", "name"),
        column("snapshot_id", "BIGINT NOT NULL", "snapshot.id"),
        column("schema_id", "BIGINT NOT NULL", "snapshot.schema_id"),
        column("commit_time", "TIMESTAMP(3) NOT NULL", "snapshot.time_millis"),
        column("record_count", "BIGINT", "snapshot.total_record_count"),
        column("create_time", "TIMESTAMP(3)", "create_time"),
        column("time_retained", "STRING", lambda rows: [_retained(tag) for tag in rows]),
    ],
)
