"""What a message says of a column's type besides its value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakeformat.types import DataType

__all__ = ["Declared", "Decoding", "declared_of"]


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


def declared_of(type: DataType | None) -> Declared:
    """A type whose values are written plainly."""
    return Declared(type)
