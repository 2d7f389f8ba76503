# SPDX-License-Identifier: Apache-2.0
"""Sorts rows along a Z-order curve, in the order of Java's rewrite_data_files.

Each value becomes bytes. A number, time or boolean becomes 8 bytes. A string or binary becomes its
first bytes; a character of a string is never cut. A null is all zeros. Then the bits of all columns
are interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.iceberg.write.partitioned_rows import source_values
from lakeformat.rows.curves import ByteRows, curve_positions, ordered_bytes, z_order
from lakeformat.rows.groups import Positions
from lakeformat.types.closest import closest

__all__ = ["ZOrder", "z_order_fields"]

_ZONELESS = ("timestamp", "timestamp_ns")
_TIMESTAMPS = (*_ZONELESS, "timestamptz", "timestamptz_ns")
_ORDERED = (
    *("boolean", "int", "long", "float", "double", "decimal", "date", "time", *_TIMESTAMPS),
    *("string", "uuid", "fixed", "binary"),
)
_TRUE = 0x81
"""The first byte of the value true; the first byte of false is 0."""
_LEAD_BYTES = (0xC0, 0xE0, 0xF0)
"""The smallest first bytes of UTF-8 characters of 2, 3 and 4 bytes."""
_DASHES = (8, 13, 18, 23)
"""The positions of the dashes in the text of a UUID."""


@dataclass(frozen=True, slots=True)
class ZOrder:
    """Sorts rows along a Z-order curve through some fields."""

    compared: Schema
    """The columns of ``fields``; for a nested field, the column in which it is nested."""
    fields: tuple[Field, ...]
    text_bytes: int
    """The number of bytes of a string that are used."""
    most_bytes: int | None
    """The number of bytes of interleaved bits that are compared; None for all bytes."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are compared."""
        return tuple(self.compared.column_names)

    def positions(self, rows: pa.Table) -> Positions:
        """Return the order of the rows as positions; equal rows keep their order."""
        compared = rows.select(self.columns)
        columns = []
        for field in self.fields:
            values = source_values(compared, self.compared, field.id)
            assert values is not None
            columns.append(z_bytes(values, field, self.text_bytes))
        return curve_positions(z_order(columns)[:, : self.most_bytes])


def z_order_fields(metadata: TableMetadata, names: Sequence[str]) -> tuple[Field, ...]:
    """Return the fields of the curve; columns that partition the table by identity are left out.

    In these columns all rows of a file have the same value. Raise ``InvalidRequestError`` for a
    column that does not exist or whose values have no order, or if all ``names`` are left out.
    """
    partitions = {
        each.source_id
        for each in metadata.spec_of(metadata.default_spec_id).fields
        if each.transform == "identity"
    }
    fields = [_ordered_field(metadata.schema, name) for name in names]
    found = tuple(each for each in fields if each.id not in partitions)
    if not found:
        raise InvalidRequestError(
            f"order_by names only partition columns ({', '.join(names)}): all rows of a partition "
            "have the same values there. Name other columns"
        )
    return found


def _ordered_field(schema: Schema, name: str) -> Field:
    field = schema.named(name)
    if field is None:
        names = [each.name for each in schema.fields if _kind(each) in _ORDERED]
        raise InvalidRequestError(
            f"order_by names {name!r}, which is not a column; strategy 'zorder' takes names of "
            f"columns without transform or direction, such as {', '.join(names)}"
            f"{closest(name, names)}"
        )
    kind = _kind(field)
    if kind not in _ORDERED:
        raise InvalidRequestError(
            f"order_by names {name!r} of type {kind}, by which strategy 'zorder' cannot sort: name "
            "columns of numbers, texts or times"
        )
    return field


def _kind(field: Field) -> str:
    return field.type.name if isinstance(field.type, PrimitiveType) else "nested"


def z_bytes(values: pa.Array, field: Field, text_bytes: int) -> ByteRows:
    """Return for each value the bytes whose bits are interleaved; a null is all zeros."""
    assert isinstance(field.type, PrimitiveType)
    name = field.type.name
    if name == "boolean":
        return _of_truth_values(values)
    if name == "uuid":
        found = _uuid_texts(values, text_bytes)
    elif name == "string":
        found = _whole_characters(ordered_bytes(values, text_bytes))
    elif name in _TIMESTAMPS:
        # Java has Spark cast a timestamp with time zone to whole seconds.
        unit, short = ("microsecond", "us") if name in _ZONELESS else ("second", "s")
        times = pc.floor_temporal(values, unit=unit).cast(pa.timestamp(short, values.type.tz))
        found = ordered_bytes(times, text_bytes)
    elif name in ("float", "double"):
        wide = values.cast(pa.float64())
        found = ordered_bytes(pc.if_else(pc.is_nan(wide), float("nan"), wide), text_bytes)
    else:
        found = ordered_bytes(values, text_bytes)
    return found


def _of_truth_values(values: pa.Array) -> ByteRows:
    found = np.zeros((len(values), 8), np.uint8)
    is_true = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    found[is_true, 0] = _TRUE
    return found


def _whole_characters(texts: ByteRows) -> ByteRows:
    """Replace with zeros a character that was cut at the end of a text."""
    size = texts.shape[1]
    for back, lead in enumerate(_LEAD_BYTES[:size], 1):
        cut = texts[:, size - back] >= lead
        texts[cut, size - back :] = 0
    return texts


def _uuid_texts(values: pa.Array, size: int) -> ByteRows:
    """Return the first ``size`` bytes of each UUID in its text form; zeros for null."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    found = ordered_bytes(values, 16)
    texts = np.stack([digits[found >> 4], digits[found & 15]], axis=2).reshape(len(found), 32)
    for place in _DASHES:
        texts = np.insert(texts, place, ord("-"), axis=1)
    kept = texts[:, :size]
    padded = np.zeros((len(found), size), np.uint8)
    padded[:, : kept.shape[1]] = kept
    padded[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return padded
