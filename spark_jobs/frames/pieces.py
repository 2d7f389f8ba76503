# SPDX-License-Identifier: Apache-2.0
"""Passes rows from one task to another as Arrow bytes: through Spark's shuffle, or in a shared
file.

Spark's shuffle copies each byte about eight times, which costs more than sorting and writing the
rows. So if all tasks run on one machine, Spark only passes the name of a file, and the range of
bytes in it.
"""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

import lakeformat as lake
from lakeformat.rows.spill_directory import SpillDirectory
from spark_jobs.frames.parts import classic_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "PIECES",
    "PIECES_DDL",
    "PieceWriter",
    "is_one_machine",
    "piece",
    "rows_of_pieces",
    "shared_directory",
]

PIECES_DDL = (
    "task int, source int, piece int, rows binary, file string, start long, size long, "
    "refused binary"
)
PIECES = pa.schema(
    [
        ("task", pa.int32()),
        ("source", pa.int32()),
        ("piece", pa.int32()),
        ("rows", pa.binary()),
        ("file", pa.string()),
        ("start", pa.int64()),
        ("size", pa.int64()),
        ("refused", pa.binary()),
    ]
)


class Packed(NamedTuple):
    """The rows of a piece, as bytes in ``rows`` or in a range of a file.

    The range has ``size`` bytes from the offset ``start`` on.
    """

    rows: pa.Buffer | None = None
    file: str | None = None
    start: int | None = None
    size: int | None = None


class PieceWriter:
    """Packs the pieces of one attempt of a task; each attempt has a separate file."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._file: pa.OSFile | None = None
        self._path = ""

    def pack(self, rows: pa.Table) -> Packed:
        """Return the rows as bytes; if the writer has a directory, write them to a file and return
        their place in the file.

        Raise ``UnavailableError`` if the file cannot be written.
        """
        if self._directory is None:
            sink = pa.BufferOutputStream()
            _write(sink, rows)
            return Packed(rows=sink.getvalue())
        with _naming_the_disk(self._directory):
            if self._file is None:
                # Create a new file: ext4 writes an existing file that is truncated to disk at once.
                self._path = os.path.join(self._directory, f"{uuid.uuid4()}.arrows")
                self._file = pa.OSFile(self._path, "wb")
            start = self._file.tell()
            _write(self._file, rows)
            return Packed(file=self._path, start=start, size=self._file.tell() - start)

    def close(self) -> None:
        """Close the file. Call it before the task ends: other tasks read the file later."""
        if self._file is not None and self._directory is not None:
            with _naming_the_disk(self._directory):
                self._file.close()


def piece(
    task: int, source: int, number: int, packed: Packed, refused: bytes | None = None
) -> pa.RecordBatch:
    """Return one row with the schema ``PIECES``, which describes a piece of rows.

    ``task`` is the task that writes the rows, ``source`` the task that packs them, and ``number``
    counts the pieces of ``source``. The writing task takes its pieces in the order of ``source``
    and ``number``. ``refused`` is the pickled error of a packing task that cannot pass its rows;
    else None.
    """
    values = (task, source, number, None, *packed[1:], refused)
    arrays = [pa.array([value], field.type) for value, field in zip(values, PIECES, strict=True)]
    if packed.rows is not None:
        ends = pa.py_buffer(np.array([0, packed.rows.size], np.int32))
        arrays[3] = pa.Array.from_buffers(pa.binary(), 1, [None, ends, packed.rows])
    return pa.RecordBatch.from_arrays(arrays, schema=PIECES)


def rows_of_pieces(pieces: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``pieces``.

    Raise ``InvalidRequestError`` at a piece in which a packing task has stored an error about its
    rows.
    """
    places = pieces.select(["file", "start", "size", "refused"]).to_pylist()
    for number, place in enumerate(places):
        if place["refused"] is not None:
            refused: lake.InvalidRequestError = pickle.loads(place["refused"])
            raise refused
        if place["file"] is None:
            yield from pa.ipc.open_stream(pieces.column("rows")[number].as_buffer())
            continue
        with pa.memory_map(place["file"]) as file:
            file.seek(place["start"])
            yield from pa.ipc.open_stream(file.read_buffer(place["size"]))


def is_one_machine(spark: SparkSession) -> bool:
    """Return True if all tasks run on the driver's machine.

    Return False with Spark Connect, where the machines of the tasks are unknown.
    """
    context = classic_context(spark)
    master = "" if context is None else str(context.master)
    return master == "local" or master.startswith("local[")


@contextmanager
def shared_directory(spark: SparkSession) -> Iterator[str | None]:
    """Yield the path of a directory that all tasks share; None if they may run on several machines.

    The directory is deleted after the block.
    """
    if not is_one_machine(spark):
        yield None
        return
    directory = SpillDirectory()
    try:
        yield str(directory.path)
    finally:
        directory.remove()


def _write(sink: pa.NativeFile, rows: pa.Table) -> None:
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)


@contextmanager
def _naming_the_disk(directory: str) -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        raise lake.UnavailableError(
            f"rows for the writing tasks could not be stored in {directory}: {reason}. Free some "
            "space, or set TMPDIR to another directory before Spark starts. Nothing was written to "
            "the table"
        ) from None
