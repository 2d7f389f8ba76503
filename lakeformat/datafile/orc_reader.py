"""Reads ORC files in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.dataset as ds

from lakeformat.datafile.orc_footer import find_far_timestamps
from lakeformat.errors import UnsupportedError

__all__ = ["read_orc"]


def read_orc(
    stream: IO[bytes], columns: list[str], batch_rows: int, rows: range
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches with the position of their first row, until ``rows`` ends."""
    far = find_far_timestamps(stream, columns)
    if far is not None:
        raise UnsupportedError(
            f"column {far!r} holds timestamps before 1677 or after 2262, which "
            "this version would read wrongly; rewrite the table in parquet with another engine"
        )
    stream.seek(0)
    source = stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
    fragment = ds.OrcFileFormat().make_fragment(source)
    # A fragment is read in batches within a stripe; ``ORCFile`` knows whole stripes only.
    scanner = fragment.scanner(
        columns=columns, batch_size=batch_rows, batch_readahead=1, use_threads=False
    )
    position = 0
    for batch in scanner.to_batches():
        if position >= rows.stop:
            return
        yield position, batch
        position += batch.num_rows
