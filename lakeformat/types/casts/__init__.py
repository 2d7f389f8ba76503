"""Casts between column types: which there are, and what they make of values, as Java does."""

from __future__ import annotations

from lakeformat.types.casts.cast import cast_array
from lakeformat.types.casts.rules import can_cast, keeps_order

__all__ = ["can_cast", "cast_array", "keeps_order"]
