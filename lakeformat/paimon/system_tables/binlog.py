# SPDX-License-Identifier: Apache-2.0
"""``$binlog``: one row for each change; each column except ``rowkind`` is an array.

An array has one value, or the old and the new value of an update.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["pack_updates", "packed_schema"]


def packed_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every column except ``rowkind`` as an array."""
    kind, *columns = schema
    arrays = [
        pa.field(each.name, pa.list_(pa.field("element", each.type)), nullable=False)
        for each in columns
    ]
    return pa.schema([kind, *arrays])


def pack_updates(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield one row per change: each ``-U`` and the ``+U`` after it become one ``+U``.

    ``schema`` is the result of ``packed_schema``. Arrays of an update have the old and the new
    value.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        if held is not None:
            batch = pa.concat_batches([held, batch])
        held = None
        last = batch.num_rows - 1
        if (
            last >= 0 and batch.column(0)[last].as_py() == "-U"
        ):  # its +U may be the first row of the next batch
            held, batch = batch.slice(last), batch.slice(0, last)
        if batch.num_rows:
            yield _packed(batch, schema)
    if held is not None:
        yield _packed(held, schema)


def _packed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    kinds = batch.column(0)
    before = pc.equal(kinds, "-U").to_numpy(zero_copy_only=False)
    after = pc.equal(kinds, "+U").to_numpy(zero_copy_only=False)
    joins_last = np.zeros(batch.num_rows, np.bool_)
    joins_last[1:] = before[:-1] & after[1:]
    starts = np.flatnonzero(~joins_last)
    offsets = pa.array(np.append(starts, batch.num_rows), pa.int32())
    lasts = np.append(starts[1:], batch.num_rows) - 1
    columns = [kinds.take(pa.array(lasts))]
    columns += [
        pa.ListArray.from_arrays(offsets, column, type=field.type)
        for column, field in zip(batch.columns[1:], list(schema)[1:], strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
