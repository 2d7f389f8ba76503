# SPDX-License-Identifier: Apache-2.0
"""Picks the columns of a file whose values repeat often enough for a dictionary."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.types.arrow_memory import array_of
from lakeformat.types.arrow_types import in_full
from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION

__all__ = ["pick_dictionary_columns", "repeating_texts", "repeats_itself"]

SAMPLE_ROWS = 8 * 1024
FIRST_LOOK = 1024
"""The number of rows in a first, small sample. If all its values differ, no larger sample is
examined.
"""
MAX_DISTINCT_FRACTION = 0.85
"""The largest share of distinct values in the sample for a column with a dictionary.

A column with 25,000 distinct values, spread evenly over its rows, has about this share.
"""
MOST_BYTES_PER_VALUE = 2


def repeats_itself(values: pa.Array, most: float = MAX_DISTINCT_FRACTION) -> bool:
    """Return True if the share of distinct values in ``values``, a sample, is at most ``most``.

    Return False, too, if a smaller sample of ``FIRST_LOOK`` values has only distinct values. For a
    dictionary array, always return True.
    """
    if pa.types.is_dictionary(values.type):
        return True
    distance = len(values) // FIRST_LOOK
    if distance > 1:
        few = values.take(array_of(np.arange(FIRST_LOOK) * distance))
        if len(few.unique()) == FIRST_LOOK:
            return False
    # Twice as fast as ``count_distinct``, which does not count nulls.
    distinct = len(values.unique()) - (values.null_count > 0)
    return bool(distinct <= most * len(values))


def pick_dictionary_columns(rows: pa.Table) -> list[str]:
    """Return the Parquet paths of the columns whose values repeat throughout ``rows``.

    Without this choice Arrow builds a dictionary of each column and gives up only at 1 MB. Columns
    without repetition then take twice the time and a quarter more space. A column whose equal
    values are neighbours also costs more with a dictionary, because compression finds such
    repetition by itself.
    """
    sample = _sample(rows)
    return [
        path
        for name in sample.column_names
        for path, values in _leaves(name, sample.column(name).combine_chunks())
        if not _has_fixed_bytes(values.type) and repeats_itself(values)
    ]


def _has_fixed_bytes(kind: pa.DataType) -> bool:
    """Return True for decimals too wide for an integer, which a file stores as bytes of a fixed
    length.

    They must get no dictionary, as in Java's files. Java's reader encodes the value of a condition
    in as few bytes as possible. So it would not find the value in the dictionary, and would skip
    all rows.
    """
    return bool(pa.types.is_decimal(kind) and kind.precision > COMPACT_DECIMAL_PRECISION)


def repeating_texts(
    metadata: pq.FileMetaData, schema: pa.Schema, columns: Collection[str]
) -> list[str]:
    """Return the text columns among ``columns`` that the file stores with small dictionaries.

    In each row group, most values of such a column are stored as indexes of a dictionary.
    """
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    return [
        name
        for number, name in enumerate(paths)
        if name in columns
        and paths.count(name) == 1  # a column may have the path of a ROW's field
        and schema.field(name).type == pa.string()
        and all(_has_small_dictionary(metadata, group, number) for group in _groups(metadata))
    ]


def _sample(rows: pa.Table) -> pa.Table:
    """Return ``SAMPLE_ROWS`` rows at equal distances.

    If the table has fewer than twice as many rows, return its first ``SAMPLE_ROWS`` rows.
    """
    distance = rows.num_rows // SAMPLE_ROWS
    if distance < 2:
        return rows.slice(0, SAMPLE_ROWS)
    places, start, parts = np.arange(SAMPLE_ROWS) * distance, 0, []
    for batch in rows.to_batches():  # take() on a table copies all of its texts first
        first, last = np.searchsorted(places, (start, start + batch.num_rows))
        parts.append(batch.take(array_of(places[first:last] - start)))
        start += batch.num_rows
    return pa.Table.from_batches(parts, rows.schema)


def _groups(metadata: pq.FileMetaData) -> range:
    return range(int(metadata.num_row_groups))


def _has_small_dictionary(metadata: pq.FileMetaData, group: int, number: int) -> bool:
    """Return True if most values of a column chunk are dictionary indexes.

    The size of the chunk shows this: a text takes at least four bytes, an index fewer.
    """
    chunk = metadata.row_group(group).column(number)
    is_small = chunk.total_uncompressed_size <= MOST_BYTES_PER_VALUE * chunk.num_values
    return bool(chunk.has_dictionary_page and is_small)


def _leaves(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    if pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", part)
    elif pa.types.is_list(values.type):
        yield from _leaves(f"{path}.list.element", values.flatten())
    elif pa.types.is_decimal64(values.type):
        yield (
            path,
            values.cast(in_full(values.type)),
        )  # Arrow cannot count distinct values of 64-bit decimals
    elif pa.types.is_map(values.type):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    else:
        yield path, values
