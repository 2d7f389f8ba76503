# SPDX-License-Identifier: Apache-2.0
"""Reads ORC files as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.dataset as ds

from lakeformat.errors import UnsupportedError
from lakeformat.files.column_choice import ColumnChoice, chosen_columns
from lakeformat.files.missing_columns import require_columns
from lakeformat.files.orc.footer import find_far_timestamps
from lakeformat.files.orc.instants import InstantRule, as_written, offsets_of
from lakeformat.files.orc.streams import check_streams
from lakeformat.files.orc.tail import OrcTail, read_tail

__all__ = ["read_orc"]


_AS_STORED = InstantRule()


def read_orc(
    stream: IO[bytes],
    columns: ColumnChoice,
    batch_rows: int,
    rows: range,
    *,
    instants: InstantRule = _AS_STORED,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of ``columns``, each with the position of its first row in the file.

    Batches before the range ``rows`` are yielded too; only those that begin after it are left out.
    ``instants`` is the rule for TIMESTAMP_LTZ.

    Raise ``MissingColumnError`` if the file lacks a column, ``ValueError`` for a damaged file, and
    ``UnsupportedError`` for timestamps that cannot be read.
    """
    source = stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
    if callable(columns):
        schema = ds.OrcFileFormat().make_fragment(source).physical_schema
        columns = chosen_columns(columns, schema)
        stream.seek(0)
    tail, zones = _checked_tail(stream, columns)
    offsets = offsets_of(instants, zones, tail, columns)
    stream.seek(0)
    fragment = ds.OrcFileFormat().make_fragment(source)
    require_columns(columns, fragment.physical_schema.names)
    # A fragment is read in batches within a stripe; ``ORCFile`` reads whole stripes only.
    scanner = fragment.scanner(
        columns=columns, batch_size=batch_rows, batch_readahead=1, use_threads=False
    )
    position = 0
    for batch in scanner.to_batches():
        if position >= rows.stop:
            return
        yield position, batch if offsets is None else as_written(batch, offsets)
        position += batch.num_rows


def _checked_tail(stream: IO[bytes], columns: Sequence[str]) -> tuple[OrcTail, set[str]]:
    """Return the footer of a file, and the time zones that its stripes name.

    Raise ``ValueError`` for content that would end the process or exhaust its memory, and
    ``UnsupportedError`` for timestamps that Arrow would read wrongly.
    """
    try:
        tail = read_tail(stream)
        zones = check_streams(stream, tail, columns)
        far = find_far_timestamps(tail, columns)
    except IndexError as reason:
        raise ValueError("its footer or a stream ends early") from reason
    if far is not None:
        raise UnsupportedError(
            f"column {far!r} has timestamps before 1677 or after 2262, which Arrow reads wrongly "
            "from ORC: rewrite the table in Parquet with another engine"
        )
    return tail, zones
