# SPDX-License-Identifier: Apache-2.0
"""Parses the time for which a tag is kept."""

from __future__ import annotations

from datetime import timedelta

from lakeformat.errors import InvalidRequestError
from lakeformat.types.amounts import parse_asked_duration

__all__ = ["Retain", "to_retained"]

Retain = timedelta | str
"""The time for which a tag is kept: a timedelta, or a str such as ``"7 d"``."""


def to_retained(retain: Retain) -> timedelta:
    """Return ``retain`` as a timedelta.

    ``InvalidRequestError`` is raised for a text that is not a duration, for a value that is neither
    text nor timedelta, and for a time that is not above 0.
    """
    if isinstance(retain, str):
        try:
            found = timedelta(milliseconds=parse_asked_duration(retain))
        except (ValueError, OverflowError) as reason:
            raise InvalidRequestError(
                f"retain is {retain!r}, but must be a duration such as '10 s': {reason}"
            ) from None
    elif isinstance(retain, timedelta):
        found = retain
    else:
        raise InvalidRequestError(
            f"retain must be a timedelta or a text such as '7 d', got {retain!r}"
        )
    if found <= timedelta(0):
        raise InvalidRequestError(
            f"retain is {retain!r}, but must be above 0: give a longer time, or leave it out"
        )
    return found
