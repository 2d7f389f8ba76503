# SPDX-License-Identifier: Apache-2.0
"""Formats a few rows as text, for messages about bad rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.secret_names import names_secret
from lakeformat.types.types import AtomicType, DataField, TypeName
from lakeformat.types.value_text import cast_text

__all__ = ["MOST_EXAMPLES", "example_texts"]

MOST_EXAMPLES = 3
_LONGEST = 40
_HIDDEN = "***"
_TEXTS = (TypeName.CHAR, TypeName.VARCHAR)
_BYTES = (TypeName.BINARY, TypeName.VARBINARY)


def example_texts(
    rows: pa.RecordBatch | pa.Table, fields: Sequence[DataField], most: int = MOST_EXAMPLES
) -> list[str]:
    """Return up to ``most`` rows as texts such as ``id=7, status='paied'``.

    Long values are cut. The values of a column whose name looks like a secret, such as
    ``password``, are hidden.
    """
    texts = [_texts(rows.column(field.name).slice(0, most), field) for field in fields]
    names = [field.name for field in fields]
    return [
        ", ".join(f"{name}={text}" for name, text in zip(names, row, strict=True))
        for row in zip(*texts, strict=True)
    ]


def _texts(column: pa.Array | pa.ChunkedArray, field: DataField) -> list[str]:
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if names_secret(field.name):
        return [_HIDDEN if valid else "NULL" for valid in pc.is_valid(values).to_pylist()]
    shown = [_shown(text, field) for text in _plain_texts(values, field)]
    return [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..." for text in shown]


def _plain_texts(values: pa.Array, field: DataField) -> list[str | None]:
    if pa.types.is_time64(values.type):
        times: list[str | None] = values.cast(pa.string()).to_pylist()
        return times
    if isinstance(field.type, AtomicType) and field.type.name not in _BYTES:
        texts: list[str | None] = cast_text(values, field.type).to_pylist()
        return texts
    return [None if value is None else str(value) for value in values.to_pylist()]


def _shown(text: str | None, field: DataField) -> str:
    if text is None:
        return "NULL"
    is_text = isinstance(field.type, AtomicType) and field.type.name in _TEXTS
    return repr(text) if is_text else text
