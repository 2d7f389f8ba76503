# SPDX-License-Identifier: Apache-2.0
"""The changes of a table between two snapshots, as rows with their kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.read.changes.files import ChangedFiles, ChangeFiles
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.changes.state_diff import StateDiff
from lakeformat.paimon.read.changes.window import ChangeMode, SnapshotWindow, read_change
from lakeformat.tables.results import Rows

__all__ = ["Changes", "ChangesPart"]

_PLANNED_AT_ONCE = 16
"""The number of snapshots whose files are planned in parallel."""


class Changes(Rows):
    """The changes of a window of snapshots; nothing is read until you ask for a result.

    The first column is ``rowkind``: ``+I`` inserted, ``-U`` and ``+U`` before and after an update,
    ``-D`` deleted. Older snapshots come first.
    """

    def __init__(
        self,
        handle: TableHandle,
        window: SnapshotWindow,
        asked: ChangedRows,
        *,
        keep_deletes: bool = False,
    ) -> None:
        super().__init__(asked.schema, self._changes)
        self._handle = handle
        self._window = window
        self._asked = asked
        self._keep_deletes = keep_deletes

    @property
    def mode(self) -> str:
        """The source of the changes: ``delta``, ``changelog`` or ``diff``."""
        return str(self._window.mode)

    @property
    def waits_for_compaction(self) -> bool:
        """True if the changes of a commit can be read only after a compaction has written the
        changelog.
        """
        return self._window.mode is ChangeMode.CHANGELOG and self._handle.options.makes_changelog

    @property
    def snapshot_ids(self) -> range:
        """The ids of the snapshots whose changes are read, oldest first."""
        return self._window.snapshot_ids

    def parts(self) -> list[ChangesPart]:
        """Return the changes as parts that can be pickled and read in parallel.

        Usually, a part is one file. In an overwrite of a primary-key table, it is the deleted or
        the added files of one bucket. In a comparison of two snapshots, it is one bucket in both
        snapshots. The parts in their order give the changes in order.
        """
        handle, window, asked = self._handle, self._window, self._asked
        if window.mode is ChangeMode.DIFF:
            buckets = self._difference().by_bucket()
            return [ChangesPart(self.schema, each.rows, each.size_bytes) for each in buckets]
        find = partial(self._files_of, ChangeFiles(handle, asked))
        with ThreadPoolExecutor(_PLANNED_AT_ONCE) as pool:
            planned = [*pool.map(find, window.snapshot_ids)]
        files = [part for found in planned for part in found.parts()]
        return [
            ChangesPart(self.schema, partial(_rows_of, handle, asked, each), each.size_bytes)
            for each in files
        ]

    def _changes(self) -> Iterator[pa.RecordBatch]:
        if self._window.mode is ChangeMode.DIFF:
            yield from self._difference().rows()
            return
        files = ChangeFiles(self._handle, self._asked)
        for number in self._window.snapshot_ids:
            yield from files.rows(self._files_of(files, number))

    def _difference(self) -> StateDiff:
        before, after = self._window.before_state, self._window.after_state
        return StateDiff.plan(
            self._handle, before, after, self._asked, keep_deletes=self._keep_deletes
        )

    def _files_of(self, files: ChangeFiles, number: int) -> ChangedFiles:
        find = files.delta if self._window.mode is ChangeMode.DELTA else files.changelog
        return find(read_change(self._handle, number))


class ChangesPart(Rows):
    """The changes that one reader reads: a part of the changes of a window of snapshots."""

    def __init__(
        self, schema: pa.Schema, read: Callable[[], Iterator[pa.RecordBatch]], size_bytes: int
    ) -> None:
        super().__init__(schema, read)
        self.size_bytes = size_bytes
        """Total size in bytes of the files that this part reads."""


def _rows_of(
    handle: TableHandle, asked: ChangedRows, found: ChangedFiles
) -> Iterator[pa.RecordBatch]:
    return ChangeFiles(handle, asked).rows(found)
