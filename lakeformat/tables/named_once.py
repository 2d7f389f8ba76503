# SPDX-License-Identifier: Apache-2.0
"""Makes a dict from pairs of a name and a value, and refuses a name that occurs twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from lakeformat.errors import InvalidRequestError

__all__ = ["named_once"]

V = TypeVar("V")


def named_once(
    kind: str, pairs: Iterable[tuple[str, V]], advice: str | None = None
) -> dict[str, V]:
    """Return the pairs of names and values as a dict.

    Raise ``InvalidRequestError`` if a name occurs twice. ``kind`` describes the names, such as
    ``column``. ``advice`` is the next step; default: to name it once.
    """
    found: dict[str, V] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidRequestError(
                f"{kind} {name!r} has two values: {advice or f'name the {kind} once'}"
            )
        found[name] = value
    return found
