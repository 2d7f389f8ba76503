# SPDX-License-Identifier: Apache-2.0
"""Temporary files on the local disk for rows that do not fit into memory.

They are deleted when the work ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from lakeformat.errors import UnavailableError
from lakeformat.rows.spill_directory import SpillDirectory

__all__ = ["Spill", "SpillOptions", "SpillSettings"]

_MIN_BATCH_BYTES = 64 << 10
"""The smallest size of a batch in bytes. A merge has one or two batches per file in memory, and
small batches are slow to read.
"""


class SpillOptions(Protocol):
    """The table options for the memory of a writer, and the limits of its temporary files."""

    @property
    def write_buffer_size_bytes(self) -> int:
        """The largest size in bytes of the rows in memory."""

    @property
    def write_buffer_spillable(self) -> bool:
        """True if temporary files are allowed."""

    @property
    def write_buffer_spill_max_disk_size_bytes(self) -> int | None:
        """The largest size in bytes of all temporary files; None without a limit."""

    @property
    def local_sort_max_num_file_handles(self) -> int:
        """The largest number of temporary files that may be open at a time."""

    @property
    def spill_compression(self) -> str:
        """The compression of temporary files: ``zstd``, ``lz4`` or ``none``."""

    @property
    def spill_compression_zstd_level(self) -> int:
        """The level of the compression ``zstd``."""


@dataclass(frozen=True, slots=True)
class SpillSettings:
    """Spill options for tables whose format has no such options."""

    write_buffer_size_bytes: int = 256 << 20
    write_buffer_spillable: bool = True
    write_buffer_spill_max_disk_size_bytes: int | None = None
    local_sort_max_num_file_handles: int = 128
    spill_compression: str = "zstd"
    spill_compression_zstd_level: int = 1


@dataclass(frozen=True, slots=True)
class _SpilledFile:
    """A temporary file in Arrow format, in which the rows are grouped by place (see ``Spill``).

    For each place, ``batches`` has the numbers of the record batches with its rows.
    """

    path: Path
    batches: dict[int, range]


class Spill:
    """The temporary files of one writer; in each, the rows are grouped by place.

    A place is a number that the writer gives to a group of rows, such as the rows of one bucket.
    """

    def __init__(self, options: SpillOptions) -> None:
        self._options = options
        self._directory: SpillDirectory | None = None
        self._files: list[_SpilledFile] = []
        self._made = 0
        # A merge of the largest number of files takes about the buffer size in memory.
        share = options.write_buffer_size_bytes // options.local_sort_max_num_file_handles
        self._batch_bytes = max(share, _MIN_BATCH_BYTES)
        self.nbytes = 0

    @property
    def has_room(self) -> bool:
        """True if the options allow one more temporary file."""
        options = self._options
        limit = options.write_buffer_spill_max_disk_size_bytes
        return (
            options.write_buffer_spillable
            and len(self._files) < options.local_sort_max_num_file_handles
            and (limit is None or self.nbytes < limit)
        )

    def __len__(self) -> int:
        return len(self._files)

    def add(self, schema: pa.Schema, parts: Iterable[tuple[int, pa.Table]]) -> None:
        """Write rows, given as pairs of a place (see ``Spill``) and its rows, to a new file.

        The pairs of one place must follow each other. Raise UnavailableError if the disk cannot
        store the rows.
        """
        with _naming_the_disk():
            path = self._new_path()
            batches: dict[int, range] = {}
            count = 0
            with pa.OSFile(str(path), "wb") as sink, self._writer(sink, schema) as writer:
                for place, rows in parts:
                    first = batches[place].start if place in batches else count
                    for batch in rows.to_batches(max_chunksize=self._batch_rows(rows)):
                        writer.write_batch(batch)
                        count += 1
                    batches[place] = range(first, count)
            self.nbytes += path.stat().st_size
        self._files.append(_SpilledFile(path, batches))

    def places(self) -> list[int]:
        """Return all places (see ``Spill``) that have rows, in ascending order."""
        return sorted({place for file in self._files for place in file.batches})

    @contextmanager
    def opened(self) -> Iterator[_OpenSpill]:
        """Open all files for reading, and close them at the end of the block."""
        with ExitStack() as stack, _naming_the_disk():
            readers = []
            for file in self._files:
                source = stack.enter_context(pa.OSFile(str(file.path), "rb"))
                readers.append((pa.ipc.open_file(source), file.batches))
            yield _OpenSpill(readers)

    def clear(self) -> None:
        """Delete all files; new files may be added afterwards."""
        self._files, self.nbytes = [], 0
        if self._directory is not None:
            self._directory.remove()
            self._directory = None

    def _batch_rows(self, rows: pa.Table) -> int:
        row_bytes: int = max(rows.nbytes // max(rows.num_rows, 1), 1)
        return max(self._batch_bytes // row_bytes, 1)

    def _new_path(self) -> Path:
        if self._directory is None:
            self._directory = SpillDirectory()
        self._made += 1
        return self._directory.path / f"{self._made}.arrow"

    def _writer(self, sink: pa.NativeFile, schema: pa.Schema) -> pa.ipc.RecordBatchFileWriter:
        codec: pa.Codec | None = None
        if self._options.spill_compression == "zstd":
            codec = pa.Codec("zstd", self._options.spill_compression_zstd_level)
        elif self._options.spill_compression == "lz4":
            codec = pa.Codec("lz4")
        return pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec))


class _OpenSpill:
    def __init__(
        self, readers: list[tuple[pa.ipc.RecordBatchFileReader, dict[int, range]]]
    ) -> None:
        self._readers = readers

    def runs(self, place: int) -> list[Iterator[pa.RecordBatch]]:
        """Return the rows of one place (see ``Spill``), one run for each file that has such rows.

        The run of the oldest file is first.
        """
        return [
            map(reader.get_batch, batches[place])
            for reader, batches in self._readers
            if place in batches
        ]


@contextmanager
def _naming_the_disk() -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        raise UnavailableError(
            f"cannot store rows in temporary files in {tempfile.gettempdir()}: {reason}; "
            "free disk space there, or set TMPDIR to another directory. If this was a write, these "
            "rows were not committed. For a write to a Paimon table, it can also help to increase "
            "'write-buffer-size', or to set 'write-buffer-spillable' to 'false'"
        ) from None
