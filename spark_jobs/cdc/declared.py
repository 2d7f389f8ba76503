# SPDX-License-Identifier: Apache-2.0
"""The type that messages declare for a column, and the encoding of the column's values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import DataType, with_nullability

__all__ = ["Declared", "Decoding", "declared_of", "type_text"]


class Decoding(Enum):
    """The encoding of a column's values in JSON."""

    PLAIN = "plain"
    BASE64 = "base64"
    BASE64_DECIMAL = "base64 of a number's bytes"
    DAYS = "days since 1970"
    MILLIS = "milliseconds since 1970"
    MICROS = "microseconds since 1970"
    NANOS = "nanoseconds since 1970"
    TIME_MILLIS = "milliseconds since midnight"


@dataclass(frozen=True, slots=True)
class Declared:
    """The type that messages declare for a column, and the encoding of its values in JSON.

    ``type`` is None if the messages declare no type.
    """

    type: DataType | None
    decoding: Decoding = Decoding.PLAIN
    scale: int = 0
    """The number of digits after the point, for ``Decoding.BASE64_DECIMAL``."""


def type_text(type: DataType) -> str:
    """Return a type as text for messages; for a nested type only its kind, such as ``ROW``."""
    described = type_to_json(with_nullability(type, nullable=True))
    return described if isinstance(described, str) else str(described["type"])


def declared_of(type: DataType | None) -> Declared:
    """Return the declaration of a type whose values need no decoding; ``type=None`` declares no
    type.
    """
    return Declared(type)
