# SPDX-License-Identifier: Apache-2.0
"""Parses table properties to numbers, flags and words."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import InvalidRequestError

__all__ = ["bool_property", "int_property", "word_property"]

_GREATEST = 2**63 - 1
_MOST_DIGITS = 19


def int_property(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return the property ``key`` as an int; ``default`` if it is not set.

    Raise ``InvalidRequestError`` unless it is a whole number from 0 to 2**63 - 1.
    """
    text = properties.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise _wrong(key, text, "a whole number of 0 or more")
    if len(text) > _MOST_DIGITS or int(text) > _GREATEST:
        raise _wrong(key, text, f"a whole number up to {_GREATEST}")
    return int(text)


def bool_property(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Return the property ``key`` as a bool; ``default`` if it is not set.

    Raise ``InvalidRequestError`` unless it is true or false.
    """
    text = properties.get(key)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise _wrong(key, text, "true or false")
    return text.lower() == "true"


def word_property(properties: Mapping[str, str], key: str, default: str, other: str) -> str:
    """Return the value of the property ``key``, in lower case; ``default`` if it is not set.

    Raise ``InvalidRequestError`` unless it is ``default`` or ``other``.
    """
    text = properties.get(key, default)
    if text.lower() not in (default, other):
        raise InvalidRequestError(
            f"the table property {key!r} is {text!r}, not {default!r} or {other!r}: correct it, or "
            f"remove it to use {default!r}"
        )
    return text.lower()


def _wrong(key: str, text: str, wanted: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the table property {key!r} is {text!r}, not {wanted}: correct it, or remove it to use "
        "the default"
    )
