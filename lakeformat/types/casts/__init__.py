# SPDX-License-Identifier: Apache-2.0
"""Casts between column types, with the results that Java gives."""

from __future__ import annotations

from lakeformat.types.casts.cast import cast_array
from lakeformat.types.casts.rules import can_cast, keeps_distinct, keeps_order

__all__ = ["can_cast", "cast_array", "keeps_distinct", "keeps_order"]
