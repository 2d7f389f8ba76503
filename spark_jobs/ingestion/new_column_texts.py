# SPDX-License-Identifier: Apache-2.0
"""Formats the columns of a new table for logs and reports."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakeformat.types.arrow_types import type_of_column
from lakeformat.types.type_text import type_to_sql

__all__ = ["column_texts"]


def column_texts(columns: Any) -> list[str]:
    """Return each column of a new table as its name and SQL type, such as ``id BIGINT``."""
    if isinstance(columns, pa.Schema):
        return [
            f"{each.name} {type_to_sql(type_of_column(each.name, each.type))}" for each in columns
        ]
    return [f"{name} {type}" for name, type in columns]
