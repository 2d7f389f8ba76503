"""Minimum, maximum and null count of columns, as manifests hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["EMPTY_ROW", "EMPTY_STATS", "SIMPLE_STATS_FIELDS", "SimpleStats"]

EMPTY_ROW = bytes(12)
"""A row without fields: its arity as a big-endian int32, then eight bytes of header."""

SIMPLE_STATS_FIELDS = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {
        "name": "_NULL_COUNTS",
        "type": ["null", {"type": "array", "items": ["null", "long"]}],
        "default": None,
    },
]


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Two framed binary rows and a null count for each column they cover."""

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] | None = ()

    def to_record(self) -> dict[str, Any]:
        counts = None if self.null_counts is None else list(self.null_counts)
        return {
            "_MIN_VALUES": self.min_values,
            "_MAX_VALUES": self.max_values,
            "_NULL_COUNTS": counts,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SimpleStats:
        counts = record.get("_NULL_COUNTS")
        return cls(
            record["_MIN_VALUES"],
            record["_MAX_VALUES"],
            None if counts is None else tuple(counts),
        )


EMPTY_STATS = SimpleStats()
"""Covers no column."""
