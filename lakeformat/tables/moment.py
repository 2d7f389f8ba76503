# SPDX-License-Identifier: Apache-2.0
"""Points in time: parses them, and formats them for messages and system tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from lakeformat.errors import InvalidRequestError

__all__ = ["Moment", "iso_text", "moment_text", "to_millis"]

Moment: TypeAlias = datetime | str | int
"""A point in time: a datetime, an ISO text, or epoch milliseconds. A datetime or text without a
zone is in UTC.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_millis(moment: Moment) -> int:
    """Return a point in time in epoch milliseconds, rounded down.

    A value that is not a point in time raises ``InvalidRequestError``.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise _no_moment(moment) from None
    if isinstance(moment, datetime):
        if moment != moment:  # True for NaT of pandas
            raise _no_moment(moment)
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise _no_moment(moment)
    return moment


def moment_text(millis: int) -> str:
    """Return epoch milliseconds as text for messages, such as ``2024-01-31 10:00:00.000Z``."""
    try:
        shown = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis}ms"
    return shown.replace(tzinfo=None).isoformat(" ", "milliseconds") + "Z"


def iso_text(millis: int) -> str:
    """Return epoch milliseconds as ISO 8601 text in UTC, without a zone; system tables show such
    times.
    """
    return moment_text(millis).removesuffix("Z").replace(" ", "T")


def _no_moment(moment: Any) -> InvalidRequestError:
    return InvalidRequestError(
        "a time must be a datetime, a text such as '2024-01-31 10:00:00' (UTC unless it has a "
        f"zone) or a number of milliseconds since 1970, got {moment!r}"
    )
