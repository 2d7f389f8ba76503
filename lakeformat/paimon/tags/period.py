# SPDX-License-Identifier: Apache-2.0
"""The periods of automatic tags: their starts and the names of their tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions
from lakeformat.types.duration_text import exact_duration

__all__ = ["Period", "period_of"]

_DAY = {
    "with_dashes": "%Y-%m-%d",
    "without_dashes": "%Y%m%d",
    "without_dashes_and_spaces": "%Y%m%d",
}
_HOUR = {
    "with_dashes": "%Y-%m-%d %H",
    "without_dashes": "%Y%m%d %H",
    "without_dashes_and_spaces": "%Y%m%d%H",
}
_MINUTE = "%Y%m%d%H%M"
_START = datetime(1970, 1, 1)  # noqa: DTZ001 - names hold local times without a zone


@dataclass(frozen=True, slots=True)
class Period:
    """Periods of one length, which are counted from 1970-01-01 00:00 in local time."""

    length: timedelta
    name_format: str

    def floor(self, moment: datetime) -> datetime:
        """Return the start of the period that contains ``moment``, a local time."""
        return moment - (moment - _START) % self.length

    def name(self, start: datetime) -> str:
        """Return the tag name of the period that begins at ``start``."""
        return start.strftime(self.name_format)

    def start_of(self, name: str) -> datetime | None:
        """Return the start of the period whose tag has this name; None for names of other tags."""
        if not re.match(r"\d{4}", name):
            return None
        try:
            start = datetime.strptime(name, self.name_format)  # noqa: DTZ007 - local, as named
        except ValueError:
            return None
        return start if self.name(start) == name else None


def period_of(options: TableOptions) -> Period:
    """Return the period that the options ``tag.creation-period*`` and ``tag.period-formatter`` set.

    Raise InvalidRequestError for a period of 0 ms, or if ``tag.creation-delay`` is not shorter than
    the period.
    """
    millis, formatter = options.tag_creation_period_duration_millis, options.tag_period_formatter
    if millis is not None:
        period = Period(timedelta(milliseconds=_positive(millis)), _MINUTE)
    elif options.tag_creation_period == "daily":
        period = Period(timedelta(days=1), _DAY[formatter])
    elif options.tag_creation_period == "hourly":
        period = Period(timedelta(hours=1), _HOUR[formatter])
    else:
        period = Period(timedelta(hours=2), _HOUR["with_dashes"])
    delay, length = options.tag_creation_delay_millis, period.length // timedelta(milliseconds=1)
    if delay >= length:
        raise InvalidRequestError(
            f"option 'tag.creation-delay' is {exact_duration(delay)}, but must be shorter than the "
            f"period of the tags, {exact_duration(length)}: lower the delay"
        )
    return period


def _positive(millis: int) -> int:
    if not millis:
        raise InvalidRequestError(
            f"option 'tag.creation-period-duration' is {millis} ms, but must be above 0: raise it"
        )
    return millis
