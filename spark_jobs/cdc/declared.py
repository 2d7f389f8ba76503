"""What a message says of a column's type besides its value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import DataType, with_nullability

__all__ = ["Declared", "Decoding", "declared_of", "type_text"]


class Decoding(Enum):
    """How a JSON value stands for one of its type, where that is not plain."""

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
    """A column's type; None where only its values tell."""

    type: DataType | None
    decoding: Decoding = Decoding.PLAIN
    scale: int = 0
    """Of a number given by its bytes."""


def type_text(type: DataType) -> str:
    """A type as people write it; of one with parts only what it is."""
    said = type_to_json(with_nullability(type, nullable=True))
    return said if isinstance(said, str) else str(said["type"])


def declared_of(type: DataType | None) -> Declared:
    """A type whose values are written plainly."""
    return Declared(type)
