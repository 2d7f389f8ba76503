"""Changes of a table between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lakeformat.expired_meanwhile import telling_of_expiry
from lakeformat.handle import TableHandle
from lakeformat.read.change_files import ChangedFiles, ChangeFiles
from lakeformat.read.change_window import ChangeMode, Window, read_change
from lakeformat.read.changed_rows import ChangedRows
from lakeformat.read.rows import Rows
from lakeformat.read.state_diff import diff_states

__all__ = ["Changes"]


class Changes(Rows):
    """The changes of a window; nothing is read before a result is asked for.

    The first column is ``rowkind``: ``+I`` inserted, ``-U`` and ``+U`` before and after an
    update, ``-D`` deleted. Snapshots come in their order.
    """

    def __init__(
        self, handle: TableHandle, window: Window, asked: ChangedRows, *, keep_deletes: bool = False
    ) -> None:
        super().__init__(asked.schema, self._changes)
        self._handle = handle
        self._window = window
        self._asked = asked
        self._keep_deletes = keep_deletes

    @property
    def mode(self) -> str:
        """Where the changes are found: ``delta``, ``changelog`` or ``diff``."""
        return str(self._window.mode)

    @property
    def snapshot_ids(self) -> range:
        """The snapshots whose changes these are, in their order."""
        return self._window.snapshot_ids

    def by_file(self) -> Sequence[Rows]:
        """The same rows in parts that follow each other, for many readers; they can be pickled."""
        if self._window.mode is ChangeMode.DIFF:
            return [self]
        return [
            Rows(self.schema, partial(_rows_of, self._handle, self._asked, part))
            for found in self._found()
            for part in (replace(found, entries=(entry,)) for entry in found.entries)
        ]

    def _found(self) -> Iterator[ChangedFiles]:
        files = ChangeFiles(self._handle, self._asked)
        find = files.delta if self._window.mode is ChangeMode.DELTA else files.changelog
        return (find(read_change(self._handle, number)) for number in self._window.snapshot_ids)

    def _changes(self) -> Iterator[pa.RecordBatch]:
        window = self._window
        if window.mode is ChangeMode.DIFF:
            with telling_of_expiry(self._handle, window.before_state, window.after_state):
                yield from diff_states(
                    self._handle,
                    window.before_state,
                    window.after_state,
                    self._asked,
                    keep_deletes=self._keep_deletes,
                )
            return
        for found in self._found():
            yield from _rows_of(self._handle, self._asked, found)


def _rows_of(
    handle: TableHandle, asked: ChangedRows, found: ChangedFiles
) -> Iterator[pa.RecordBatch]:
    return ChangeFiles(handle, asked).rows(found)
