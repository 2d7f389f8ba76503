# SPDX-License-Identifier: Apache-2.0
"""Writes the sorted rows of one group, divided into files of about the same number of rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakeformat.iceberg.compact.file_order import FileOrder
from lakeformat.iceberg.compact.plan import CompactUnit
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.rows.range_sort import sorted_batches
from lakeformat.rows.spill import SpillSettings

__all__ = ["write_sorted"]

_SPILL = SpillSettings(write_buffer_size_bytes=1 << 30)


def write_sorted(
    unit: CompactUnit, rows: Scan, keys: Scan, order: FileOrder, writer: TableWriter
) -> None:
    """Write the rows of a group in order; ``keys`` reads the columns that are compared.

    Within a partition the rows of each new file follow those of the file before.
    """

    def read(scan: Scan) -> Iterator[pa.RecordBatch]:
        return (batch for file in unit.files for batch in scan.read(file.split))

    def read_keys(_: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read(keys)

    chosen = order.rows if unit.has_one_partition else order.with_partitions
    files = unit.expected_files if unit.has_one_partition else 1
    # The manifests may lack the number of rows.
    left = rows_of_file = -(-unit.rows // files) or sys.maxsize
    for batch in sorted_batches(read(rows), read_keys, unit.rows, chosen, _SPILL):
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, left)
            writer.write(part)
            rest, left = rest.slice(part.num_rows), left - part.num_rows
            if not left:
                writer.end_files()
                left = rows_of_file
