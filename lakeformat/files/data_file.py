# SPDX-License-Identifier: Apache-2.0
"""Readers of data files of any format, checks of their rows, and errors that name the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import CorruptTableError, NotFoundError, UnsupportedError
from lakeformat.files.check_values import check_values
from lakeformat.files.column_choice import ColumnChoice
from lakeformat.files.file_format import FileFormat
from lakeformat.files.orc.instants import InstantRule
from lakeformat.files.parquet.reader import read_parquet
from lakeformat.types.count_text import counted

__all__ = [
    "ALL_ROWS",
    "BATCH_ROWS",
    "KeepRows",
    "ReadFile",
    "naming_file",
    "reader_of",
    "stored_batches",
]

BATCH_ROWS = 128 * 1024
ALL_ROWS = range(1 << 62)

KeepRows: TypeAlias = Callable[[int, int], npt.NDArray[np.bool_]]
"""A function of ``start`` and ``count``, which returns a mask of ``count`` rows from row ``start``
on: True for live rows.
"""

ReadFile: TypeAlias = Callable[
    [IO[bytes], ColumnChoice, int, range], Iterator[tuple[int, pa.RecordBatch]]
]


def reader_of(file_format: FileFormat, instants: InstantRule | None = None) -> ReadFile:
    """Return the reader of a format; the readers of ORC and Avro are imported when first needed.

    ``instants`` is the rule for TIMESTAMP_LTZ values in ORC files; without it, they are read as
    stored.
    """
    match file_format:
        case FileFormat.PARQUET:
            return read_parquet
        case FileFormat.ORC:
            from lakeformat.files.orc.reader import read_orc

            return read_orc if instants is None else partial(read_orc, instants=instants)
        case FileFormat.AVRO:
            from lakeformat.files.avro.reader import read_avro

            return read_avro


def stored_batches(
    read: ReadFile,
    stream: IO[bytes],
    columns: ColumnChoice,
    batch_rows: int,
    rows: range,
    row_count: int | None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the batches of a file, each with the position of its first row.

    The batches have all rows of the range ``rows``, and may have other rows. ``row_count`` is the
    number of rows that the manifest records, or None if it is unknown. Raise ``ValueError`` if the
    read rows contradict ``row_count``, and for a value that its type does not allow.
    """
    end = 0
    for start, batch in read(stream, columns, batch_rows, rows):
        end = start + batch.num_rows
        if row_count is not None and end > row_count:
            raise ValueError(
                f"it has {counted(end, 'row')} or more, but the manifest records "
                f"{counted(row_count, 'row')} for it"
            )
        # Decoders check neither that texts are UTF-8 nor that decimals fit their precision.
        check_values(batch)
        yield start, batch
    if row_count is not None and end < min(row_count, rows.stop):
        raise ValueError(
            f"it ends after {counted(end, 'row')}, but the manifest records "
            f"{counted(row_count, 'row')} for it"
        )


@contextmanager
def naming_file(uri: str) -> Iterator[None]:
    """In a with block, raise errors about a file as a ``CorruptTableError`` that names it.

    An ``UnsupportedError`` keeps its class.
    """
    try:
        yield
    except UnsupportedError as reason:
        if uri in str(reason):
            raise
        raise UnsupportedError(f"{uri}: {reason}") from reason
    except NotFoundError:
        raise CorruptTableError(
            f"data file {uri} is missing although a manifest lists it. If its snapshot has just "
            "expired, scan again; otherwise restore the file from a backup"
        ) from None
    except (pa.ArrowException, OSError, KeyError, ValueError, MemoryError) as reason:
        memory = "give the process more memory; if it has enough, the file is damaged: "
        said = " ".join(str(reason).split()).rstrip(".")  # Arrow's may end with a line break
        raise CorruptTableError(
            f"data file {uri} cannot be read: {said}; "
            f"{memory if isinstance(reason, MemoryError) else ''}"
            "restore it from a backup or roll the table back to an earlier snapshot"
        ) from reason
