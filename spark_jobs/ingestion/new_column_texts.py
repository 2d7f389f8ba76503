# SPDX-License-Identifier: Apache-2.0
"""The columns of a new table as people read them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakeformat.types.arrow_types import from_arrow_type
from lakeformat.types.type_text import type_to_sql

__all__ = ["column_texts"]


def column_texts(columns: Any) -> list[str]:
    """Return the columns of a new table, each as name and type."""
    if isinstance(columns, pa.Schema):
        return [f"{each.name} {type_to_sql(from_arrow_type(each.type))}" for each in columns]
    return [f"{name} {type}" for name, type in columns]
