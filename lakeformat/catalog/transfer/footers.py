# SPDX-License-Identifier: Apache-2.0
"""Takes the reliable column statistics from the footers of files that other programs wrote.

Only integers, dates and timestamps get a minimum and maximum. In footers the bounds of strings may
be cut, and the bounds of floats ignore NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.column_statistics import (
    NO_STATISTICS,
    ColumnStatistics,
    bounded_by,
    merge_bounds,
)
from lakeformat.files.parquet.sound_statistics import SoundStatistics
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import AtomicType, DataField, TypeName
from lakeformat.types.values import Value, values_from_arrow

__all__ = ["footer_statistics"]

_BOUNDED = {
    TypeName.TINYINT,
    TypeName.SMALLINT,
    TypeName.INT,
    TypeName.BIGINT,
    TypeName.DATE,
    TypeName.TIMESTAMP,
    TypeName.TIMESTAMP_LTZ,
}


def footer_statistics(
    known: SoundStatistics | None, fields: Sequence[DataField | None]
) -> list[ColumnStatistics]:
    """Return the statistics of each field, in the order of ``fields``.

    ``known`` reads the footer of a Parquet file. It is None for an ORC file; then no field has
    statistics. A field that is None, or that the file lacks, has no statistics.
    """
    if known is None:
        return [NO_STATISTICS] * len(fields)
    schema = known.metadata.schema
    leaves = {schema.column(n).path: n for n in range(len(schema))}
    return [_of_column(known, field, leaves) for field in fields]


def _of_column(
    known: SoundStatistics, field: DataField | None, leaves: Mapping[str, int]
) -> ColumnStatistics:
    leaf = None if field is None else leaves.get(field.name)
    if field is None or leaf is None:
        return NO_STATISTICS
    nulls, parts = 0, list[tuple[Value, Value] | None]()
    for group in range(known.metadata.num_row_groups):
        found = known.of(group, leaf)
        if found is None or not found.has_null_count:
            return NO_STATISTICS
        nulls += found.null_count
        if found.num_values:
            parts.append(_bounds(found, field))
    return bounded_by(merge_bounds(parts), nulls)


def _bounds(found: pq.Statistics, field: DataField) -> tuple[Value, Value] | None:
    is_bounded = isinstance(field.type, AtomicType) and field.type.name in _BOUNDED
    if not is_bounded or not found.has_min_max:
        return None
    ends = pa.array([found.min, found.max], to_arrow_type(field.type))
    low, high = values_from_arrow(ends, field.type)
    return low, high
