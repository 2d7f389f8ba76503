# SPDX-License-Identifier: Apache-2.0
"""Parses times in the past, given as a point in time or as an age."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.types.amounts import parse_asked_duration

__all__ = ["PastTime", "past_millis", "refuse_future"]

PastTime: TypeAlias = Moment | timedelta
"""A point in time, or an age: a timedelta or a text such as ``"2 d"``."""


def past_millis(name: str, asked: PastTime, now_millis: int) -> int:
    """Return a time in epoch milliseconds; an age such as ``"2 d"`` is subtracted from
    ``now_millis``.

    A time in the future, and a value that is not a time, raise ``InvalidRequestError``, which names
    the argument ``name``.
    """
    found = _millis(name, asked, now_millis)
    refuse_future(name, found, now_millis)
    return found


def refuse_future(name: str, millis: int, now_millis: int) -> None:
    """Raise ``InvalidRequestError``, which names the argument ``name``, if a time is in the
    future.
    """
    if millis > now_millis:
        raise InvalidRequestError(
            f"{name} is {moment_text(millis)}, which is in the future: now is "
            f"{moment_text(now_millis)}; pass a time in the past"
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
        return now_millis - parse_asked_duration(asked)
    except ValueError as reason:
        raise InvalidRequestError(
            f"{name} must be a time such as '2024-01-31 10:00' (UTC unless it has a zone) or an "
            f"age such as '7 d', got {asked!r}: {reason}"
        ) from None
