# SPDX-License-Identifier: Apache-2.0
"""Reads the deletes of a node, in parts that fit into memory.

A row is deleted if any part deletes it, so parts can be searched one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.read.file_rows import file_rows_of
from lakeformat.mixed.read.base_versions import BEFORE_ALL, base_versions
from lakeformat.mixed.read.key_deletes import KeyDeletes
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.version_field import version_numbers
from lakeformat.tables.scan_report import ScanReport

__all__ = ["DeletePart", "NodeDeletes", "offsets_of"]

_MOST_BYTES = 32 << 20
"""The largest size of the keys and offsets in memory, in bytes: about two million deletes if the
key is one number.

Their index takes up to seven times as much.
"""


class DeletePart:
    """Some deletes of a node."""

    def __init__(self, index: Callable[[], KeyDeletes], *, is_last: bool) -> None:
        self._index = index
        self.is_last = is_last
        """True if the node has no further deletes."""

    @cached_property
    def deletes(self) -> KeyDeletes:
        """The index of the deleted keys, built at the first access.

        Before that, a thread has started to read rows: it reads on while the index is built.
        """
        return self._index()


@dataclass(slots=True)
class NodeDeletes:
    """Reads the deletes of nodes, one node after the other; neighbouring nodes may share files."""

    state: MixedState
    report: ScanReport
    _known: dict[str, pa.Table] = field(default_factory=dict)
    """The deletes of the previous node; each key is the path of a file.

    Empty if these deletes needed more than one part.
    """

    def parts(
        self, files: Sequence[StoreFile], base_files: Sequence[StoreFile] = ()
    ) -> Iterator[DeletePart]:
        """Yield the deletes of some files; no part if the files have no rows.

        In a table with a version field, rows of ``base_files`` delete rows with smaller versions.
        """
        held: list[tuple[StoreFile, pa.Table]] = []
        size, is_whole = 0, True
        for file, rows in self._rows(files):
            if not rows.num_rows:
                continue
            if held and size + rows.nbytes > _MOST_BYTES:
                yield DeletePart(partial(self._index, held, base_files), is_last=False)
                held, size, is_whole = [], 0, False
            held.append((file, rows))
            size += rows.nbytes
        self._keep(held if is_whole else [])
        if held:
            yield DeletePart(partial(self._index, held, base_files), is_last=True)

    def _keep(self, held: Sequence[tuple[StoreFile, pa.Table]]) -> None:
        found: dict[str, list[pa.Table]] = {}
        for file, rows in held:
            found.setdefault(file.path, []).append(rows)
        self._known = {path: pa.concat_tables(tables) for path, tables in found.items()}

    def _rows(self, files: Sequence[StoreFile]) -> Iterator[tuple[StoreFile, pa.Table]]:
        """Yield each file with the keys and offsets of its rows, in the order of transactions.

        A file is yielded once for each record batch that is read.
        """
        known = self._known
        for each in sorted(files, key=lambda file: (file.transaction, file.path)):
            if each.path in known:
                yield each, known[each.path]
                continue
            for batch in self._read(each):
                offsets_of(batch.column(-1), each.path)
                yield each, pa.Table.from_batches([batch])

    def _read(self, file: StoreFile) -> Iterator[pa.RecordBatch]:
        state, stored = self.state, file.split.file
        self.report.opened(stored.size_bytes)
        versions = () if state.version is None else (state.version,)
        fields = (*state.key, *versions, FILE_OFFSET)
        files = file_rows_of(state.change.places, state.change.metadata.properties)
        yield from files.read(
            stored.path,
            stored.format,
            fields,
            row_count=stored.record_count,
            constants=dict(stored.constants),
        )

    def _index(
        self, held: Sequence[tuple[StoreFile, pa.Table]], base_files: Sequence[StoreFile]
    ) -> KeyDeletes:
        state = self.state
        numbers = np.array([file.transaction for file, _ in held], np.int64)
        transactions = np.repeat(numbers, [rows.num_rows for _, rows in held])
        rows = pa.concat_tables([rows for _, rows in held])
        if state.version is not None:
            of_base = base_versions(state, base_files, rows, self.report)
            before = np.full(len(of_base), BEFORE_ALL, np.int64)
            transactions = np.concatenate([transactions, before])
            rows = pa.concat_tables([rows, of_base])
        columns = [column.combine_chunks() for column in rows.combine_chunks().columns]
        keys, offsets = columns[: len(state.key)], columns[-1].to_numpy()
        versions = None if state.version is None else version_numbers(columns[-2])
        return KeyDeletes(keys, transactions, offsets, versions)


def offsets_of(column: pa.Array, path: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offsets of changes; raise ``CorruptTableError`` if one is missing."""
    if column.null_count:
        raise CorruptTableError(
            f"{path} has changes without a value in {FILE_OFFSET.name}, so their order is unknown: "
            "restore the file from a backup"
        )
    return np.asarray(column.to_numpy(), np.int64)
