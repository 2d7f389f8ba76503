"""A time gone by, as people say it: a point in time, or how long ago."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.kinds import ASKED_DURATION
from lakeformat.paimon.read.time_travel import Moment, moment_text, to_millis

__all__ = ["PastTime", "past_millis", "refuse_future"]

PastTime: TypeAlias = Moment | timedelta
"""A point in time, or how long ago: a timedelta or a text such as ``"2 d"``."""


def past_millis(name: str, asked: PastTime, now_millis: int) -> int:
    """Epoch milliseconds of what ``name`` says; refused where it has not come yet."""
    found = _millis(name, asked, now_millis)
    refuse_future(name, found, now_millis)
    return found


def refuse_future(name: str, millis: int, now_millis: int) -> None:
    """Raise if a time has not come yet: everything there is would be older."""
    if millis > now_millis:
        raise InvalidRequestError(
            f"{name} is {moment_text(millis)}, in the future: it is {moment_text(now_millis)} now; "
            "take a time that has passed"
        )


def _millis(name: str, asked: PastTime, now_millis: int) -> int:
    if isinstance(asked, timedelta):
        return now_millis - asked // timedelta(milliseconds=1)
    try:
        return to_millis(asked)
    except InvalidRequestError as reason:
        if not isinstance(asked, str):
            raise InvalidRequestError(f"{name}: {reason}") from None
    try:
        return now_millis - ASKED_DURATION.parse(asked)
    except ValueError as reason:
        raise InvalidRequestError(
            f"{name} is a time such as '2024-01-31 10:00' (UTC unless it says a zone) or an age "
            f"such as '7 d', got {asked!r}: {reason}"
        ) from None
