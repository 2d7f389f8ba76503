# SPDX-License-Identifier: Apache-2.0
"""Decodes entries of manifests to Arrow columns, field by field, without Python objects for values.

A manifest that is damaged or has an unusual structure is left to ``avro_records``, which names the
defect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lakeformat.files.avro.avro_container import NotPlainError
from lakeformat.files.avro.record_arrow import to_arrow
from lakeformat.files.avro.record_reader import FieldValues
from lakeformat.files.avro.record_shape import Shape, shapes_of
from lakeformat.files.avro.record_windows import RecordFields, read_windows
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.avro_records import RecordFile, partition_key
from lakeformat.iceberg.metadata.physical_values import from_stored, stored_type
from lakeformat.iceberg.types import StructType
from lakeformat.types.arrow_memory import array_of

__all__ = ["columnar_entries"]

_FILE, _PARTITION = "data_file.", "data_file.partition."
_FOUND_BY = f"{_FILE}file_format"


def columnar_entries(
    manifest: RecordFile,
    entry: Sequence[pa.Field],
    file: Sequence[pa.Field],
    partition: StructType,
    keys: Collection[int] | None = None,
) -> Iterator[dict[str, pa.Array]]:
    """Yield the columns of many manifest entries at a time.

    The columns are those in ``entry``, which describe the entry itself; those in ``file``, which
    describe its file; and ``partition``. ``keys`` are the field ids whose values are needed from
    maps such as ``lower_bounds``; ``keys=None`` means all fields. Raise ``NotPlainError`` if
    ``avro_records`` must decode the manifest; some columns may have been yielded before.
    """
    try:
        shapes = shapes_of(manifest.schema)
    except ValueError as reason:
        raise NotPlainError(str(reason)) from None
    for values in read_windows(manifest.blocks, RecordFields(shapes, _FOUND_BY, keys)):
        try:
            columns = {field.name: _column(field, field.name, shapes, values) for field in entry}
            for field in file:
                columns[field.name] = _column(field, _FILE + field.name, shapes, values)
            columns["partition"] = _partition(partition, shapes, values)
        except (pa.ArrowException, ValueError, OverflowError) as reason:
            raise NotPlainError(f"a value does not fit: {reason}") from None
        yield columns


def _column(
    field: pa.Field, path: str, shapes: Mapping[str, Shape], values: Mapping[str, FieldValues]
) -> pa.Array:
    """Return one field of all entries as a column; raise ``NotPlainError`` if a required value is
    missing.
    """
    count = _count(values)
    if path not in shapes and field.name == "content":  # Version 1 has only data files.
        return array_of(np.zeros(count, np.int32))
    column = (
        to_arrow(values[path], shapes[path], field.type)
        if path in shapes
        else pa.nulls(count, field.type)
    )
    if not field.nullable and column.null_count:
        raise NotPlainError(f"an entry has no {field.name}")
    return column


def _partition(
    partition: StructType, shapes: Mapping[str, Shape], values: Mapping[str, FieldValues]
) -> pa.Array:
    arrow_type, count = to_arrow_type(partition), _count(values)
    columns = []
    for field in partition.fields:
        path = _PARTITION + partition_key(field.id)
        if path not in shapes:
            raise NotPlainError(f"its partitions have no field {field.name}")
        stored = to_arrow(values[path], shapes[path], stored_type(field.type))
        columns.append(from_stored(field.type, stored))
    if not columns:
        return pa.Array.from_buffers(arrow_type, count, [None])
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


def _count(values: Mapping[str, FieldValues]) -> int:
    found = values[_FOUND_BY].content
    assert hasattr(found, "starts")
    return len(found.starts)
