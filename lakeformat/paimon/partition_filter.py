# SPDX-License-Identifier: Apache-2.0
"""Filters for partitions: all of them, those with given values, or those with given binary rows."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.paimon.binary_row import FramedRows, decode_row, unframe_row
from lakeformat.paimon.metadata.simple_stats import MOST_TESTED, SimpleStats, may_contain_any
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.schema import TableSchema
from lakeformat.tables.arguments import PartitionSpec
from lakeformat.types.casts import cast_array
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import STRING, AtomicType, DataField, DataType, TypeName
from lakeformat.types.value_text import cast_text, internal_text
from lakeformat.types.values import values_from_arrow

__all__ = [
    "PartitionFilter",
    "is_exact",
    "some_partitions",
    "these_partitions",
    "without_padding",
]

_DAY = re.compile(r"[0-9]{8}")
"""A date such as 20240131, which is never read as a number of days since 1970."""
_SPELLED = {
    TypeName.DATE,
    TypeName.TIME,
    TypeName.TIMESTAMP,
    TypeName.TIMESTAMP_LTZ,
    TypeName.FLOAT,
    TypeName.DOUBLE,
}
"""Types whose values have several spellings.

A cast from text rounds some texts, and completes other texts, for example ``2024-01`` with a day.
"""
_MIDNIGHT = re.compile(r"[ T]00:00(:00(\.0*)?)?\s*(Z|\+00:?00)?$")
_Values: TypeAlias = Mapping[int, pa.Array]
"""One value (an array of length 1) for each chosen partition column, by the column's position."""


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Selects partitions that match one of ``specs``, or that are one of the binary rows
    ``rows``.
    """

    schema: TableSchema
    specs: tuple[_Values, ...] = ()
    rows: pa.Array | None = None

    def mask(self, partitions: pa.Array) -> NDArray[np.bool_]:
        """Return a mask of ``partitions``, which are framed binary rows: True for a selected
        partition.
        """
        if self.rows is not None:
            return _to_numpy(pc.is_in(partitions, self.rows))
        different = partitions.dictionary_encode()
        meant = self._meets_one(different.dictionary)
        found: NDArray[np.bool_] = meant[different.indices.to_numpy()]
        return found

    def may_hold(self, stats: SimpleStats) -> bool:
        """Return False if no selected partition is within the bounds ``stats`` of a manifest.

        Return True otherwise. If the filter has more than ``MOST_TESTED`` partitions or specs,
        return True without a comparison.
        """
        fields = partition_fields(self.schema)
        types = [field.type for field in fields]
        if self.rows is not None:
            return may_contain_any(stats, self.rows, types)
        if self.is_everything or len(self.specs) > MOST_TESTED:
            return True
        return any(_may_meet(spec, stats, types) for spec in self.specs)

    @property
    def is_everything(self) -> bool:
        """True if the filter selects every partition, also those that are created later."""
        return any(not spec for spec in self.specs)

    def _meets_one(self, partitions: pa.Array) -> NDArray[np.bool_]:
        types = [field.type for field in partition_fields(self.schema)]
        meant = np.zeros(len(partitions), np.bool_)
        if self.is_everything or not len(partitions):
            return ~meant
        framed = FramedRows(partitions, types)
        columns = {
            at: without_padding(framed.column(at), types[at]) for spec in self.specs for at in spec
        }
        for spec in self.specs:
            meets = np.ones(len(partitions), np.bool_)
            for position, value in spec.items():
                meets &= _equals(columns[position], value)
            meant |= meets
        return meant


def these_partitions(schema: TableSchema, rows: pa.Array) -> PartitionFilter:
    """Return the filter for exactly the partitions ``rows``, in the form of ``FramedRows``."""
    return PartitionFilter(schema, rows=rows.unique())


def some_partitions(schema: TableSchema, specs: Collection[PartitionSpec]) -> PartitionFilter:
    """Return the filter for partitions that match one of ``specs``, such as ``{"dt":
    "2024-01-31"}``.

    A partition matches if it has the values of the spec; an empty spec matches every partition.
    Blanks at the end of CHAR values are ignored, because only some writers pad these values.
    Raise InvalidRequestError for an unknown column, or for a value that its column cannot hold.
    """
    return PartitionFilter(schema, tuple(_values(schema, spec) for spec in specs))


def _values(schema: TableSchema, spec: PartitionSpec) -> _Values:
    keys = ", ".join(schema.partition_keys)
    known = f"the table is partitioned by {keys}" if keys else "the table has no partitions"
    if not isinstance(spec, Mapping):
        raise InvalidRequestError(
            f"a partition must be a dict from partition columns to values, got {spec!r}: {known}"
        )
    fields = partition_fields(schema)
    unknown = [key for key in spec if key not in schema.partition_keys]
    if unknown:
        raise InvalidRequestError(f"{unknown[0]!r} is not a partition column: {known}")
    return {
        position: without_padding(_value(spec[field.name], field, schema), field.type)
        for position, field in enumerate(fields)
        if field.name in spec
    }


def _value(value: Any, field: DataField, schema: TableSchema) -> pa.Array:
    """Return the value as an array of length 1 in the column's type.

    None and the directory name of null become null. Raise InvalidRequestError for a value that the
    column cannot hold exactly.
    """
    default = schema.table_options.partition_default_name
    text = None if value is None or value == default else _as_text(value)
    wrong = f"{value!r} is not a value of the partition column {field.name!r}"
    if text is not None and isinstance(field.type, AtomicType) and field.type.name in _SPELLED:
        return _spelled(text, field, wrong, legacy=schema.table_options.partition_legacy_name)
    try:
        found = cast_array(pa.array([text], pa.string()), STRING, field.type)
    except LakeError as reason:
        raise InvalidRequestError(f"{wrong}: {reason}") from None
    if text is not None and not is_exact(text, found, field.type):
        raise InvalidRequestError(
            f"{wrong}: converted to the column's type {type_to_json(field.type)}, it becomes "
            f"{found[0].as_py()!r}; give the exact value"
        )
    return found


def _spelled(text: str, field: DataField, wrong: str, *, legacy: bool) -> pa.Array:
    """Return the partition value that a text stands for.

    The text is a literal as in a WHERE condition, or the value's text in the name of a partition
    directory. In a DATE column, a literal may end with the time 00:00, without a zone or in UTC. If
    the text is neither, raise InvalidRequestError with a message that begins with ``wrong``.
    """
    from lakeformat.rows.conditions.literals import (  # only for given partitions
        OR_A_RANGE,
        literal_of,
    )

    is_date = isinstance(field.type, AtomicType) and field.type.name is TypeName.DATE
    asked = _MIDNIGHT.sub("", text) if is_date else text
    try:
        found = literal_of(asked, field)
        return pa.array([found], found.type)
    except InvalidRequestError as reason:
        named = None if is_date and _DAY.fullmatch(text) else _of_directory(text, field, legacy)
        if named is not None:
            return named
        same = f"{asked!r} is not a value of column {field.name!r}"
        why = str(reason).removeprefix(same).removesuffix(OR_A_RANGE)
        raise InvalidRequestError(f"{wrong}{why}") from None


def _of_directory(text: str, field: DataField, legacy: bool) -> pa.Array | None:
    """Return the value whose directory has the name ``text``; None if there is none."""
    try:
        found = cast_array(pa.array([text], pa.string()), STRING, field.type)
    except LakeError:
        return None
    shown = internal_text(found, field.type) if legacy else cast_text(found, field.type)
    return found if shown[0].as_py() == text else None


def _as_text(value: Any) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_exact(text: str, found: pa.Array, data_type: DataType) -> bool:
    """Return True if the cast from ``text`` to ``data_type`` lost nothing.

    Only integers, decimals and texts are compared. For other types return True, because one value
    has several spellings. Blanks at the end of a CHAR value are ignored.
    """
    kind = found.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        try:
            return Decimal(text.strip()) == Decimal(found[0].as_py())
        except InvalidOperation:
            return False
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        asked = pa.array([text], kind)
        return bool(without_padding(asked, data_type) == without_padding(found, data_type))
    return True


def _may_meet(spec: _Values, stats: SimpleStats, types: list[DataType]) -> bool:
    rows = [unframe_row(row) for row in (stats.min_values, stats.max_values)]
    if any(arity != len(types) for arity, _ in rows):
        return True  # without bounds, no partition is excluded
    least, most = (decode_row(row, types) for _, row in rows)
    for position, value in spec.items():
        [wanted] = values_from_arrow(value, types[position])
        bounds = (least[position], most[position])
        if None in (wanted, *bounds):
            continue
        if _padded(wanted, types[position]) < bounds[0] or wanted > bounds[1]:
            return False
    return True


def without_padding(values: pa.Array, data_type: DataType) -> pa.Array:
    """Return CHAR values without the blanks at their ends, and any other values unchanged."""
    is_char = isinstance(data_type, AtomicType) and data_type.name is TypeName.CHAR
    return pc.utf8_rtrim(values, " ") if is_char else values


def _padded(value: Any, data_type: DataType) -> Any:
    if isinstance(data_type, AtomicType) and data_type.name is TypeName.CHAR:
        return value.ljust(data_type.length)
    return value


def _equals(column: pa.Array, value: pa.Array) -> NDArray[np.bool_]:
    if value.null_count:
        return _to_numpy(pc.is_null(column))
    if pa.types.is_floating(value.type) and math.isnan(value[0].as_py()):
        return _to_numpy(pc.fill_null(pc.is_nan(column), False))
    return _to_numpy(pc.fill_null(pc.equal(column, value[0]), False))


def _to_numpy(mask: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found
