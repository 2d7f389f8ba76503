# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a plain file that a migration rewrites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lakeformat.catalog.transfer.plain_files import MigratedFile
from lakeformat.errors import InvalidRequestError
from lakeformat.files.file_format import FileFormat
from lakeformat.storage import Storage
from lakeformat.types.sentence import sentence

__all__ = ["read_plain_rows"]


def read_plain_rows(
    storage: Storage, file: MigratedFile, schema: pa.Schema, partition: Mapping[str, pa.Array]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, with the columns of ``schema`` that the file or ``partition`` has.

    ``partition`` has the value of each partition column, as an array with one element. Values are
    not checked here; the writer checks them. A file that cannot be read raises
    ``InvalidRequestError``.
    """
    try:
        with storage.open_input(file.info.path) as stream:
            for batch in _batches(stream, file):
                yield _with_partition(batch, schema, partition)
    except (pa.ArrowException, OSError) as reason:
        raise InvalidRequestError(
            f"{file.uri} cannot be read: {sentence(reason)} Restore it, or move it out of the "
            "directory"
        ) from reason


def _batches(stream: object, file: MigratedFile) -> Iterator[pa.RecordBatch]:
    if file.format is FileFormat.PARQUET:
        yield from pq.ParquetFile(stream).iter_batches()
        return
    found = orc.ORCFile(stream)
    for number in range(found.nstripes):
        yield found.read_stripe(number)


def _with_partition(
    batch: pa.RecordBatch, schema: pa.Schema, partition: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    arrays, fields = [], []
    for field in schema:
        if field.name in partition:
            arrays.append(pa.repeat(partition[field.name][0], batch.num_rows))
        elif field.name in batch.schema.names:
            arrays.append(batch.column(field.name))
        else:
            continue
        fields.append(pa.field(field.name, arrays[-1].type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
