# SPDX-License-Identifier: Apache-2.0
"""Parses the columns of a new table: an Arrow schema, or names with SQL types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_rules import require_pair, require_text
from lakeformat.types.type_text import parse_type

__all__ = ["Columns", "arrow_columns"]

Columns: TypeAlias = "pa.Schema | Sequence[tuple[str, str]]"
"""An Arrow schema, or pairs of a name and a SQL type."""


def arrow_columns(columns: Columns) -> pa.Schema:
    """Return ``columns``, an Arrow schema or pairs of name and SQL type, as an Arrow schema.

    Raise ``InvalidRequestError`` if ``columns`` is neither.
    """
    if isinstance(columns, pa.Schema):
        return columns
    try:
        pairs = [(name, parse_type(text)) for name, text in map(require_pair, columns)]
    except (TypeError, ValueError):
        raise InvalidRequestError(
            "the columns must be an Arrow schema or (name, type) pairs such as [('id', 'BIGINT')], "
            f"got {columns!r}"
        ) from None
    for name, _ in pairs:
        require_text("a column's name", name)
    return pa.schema(
        [pa.field(name, to_arrow_type(kind), nullable=kind.nullable) for name, kind in pairs]
    )
