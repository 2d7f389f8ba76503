"""The sort order of partitions by value."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.key_order import orderable
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.schema import TableSchema

__all__ = ["partition_ranks"]


def partition_ranks(schema: TableSchema, partitions: Collection[bytes]) -> dict[bytes, int]:
    """Return the rank of each partition in ascending order of values, nulls first."""
    rows = [*partitions]
    types = [field.type for field in partition_fields(schema)]
    keys: list[pa.ChunkedArray] = []
    for values in decode_columns(pa.array(rows, pa.large_binary()), types):
        column = orderable(pa.chunked_array([values]))
        keys += [pc.is_valid(column), column]
    names = [str(number) for number in range(len(keys))]
    table = pa.table(keys, names=names)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    return {rows[row]: rank for rank, row in enumerate(order.to_pylist())}
