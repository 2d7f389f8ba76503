# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of a branch between two snapshots: commit by commit, or as one difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.branch_history import BranchHistory
from lakeformat.iceberg.choice import newest_at, snapshot_id_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.appends import (
    APPEND,
    AppendedRows,
    require_beginning,
    snapshots_between,
)
from lakeformat.iceberg.read.asked_rows import (
    ROW_KIND,
    AskedRows,
    asked_rows,
    require_one_kind,
)
from lakeformat.iceberg.read.changed_rows import changed_rows
from lakeformat.iceberg.read.commit_changes import commit_changes
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.time_travel import find_state
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.references.origin import unknown_reference
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions, WindowEnd
from lakeformat.tables.moment import to_millis
from lakeformat.tables.position import MAIN_BRANCH, Position
from lakeformat.tables.results import Rows

__all__ = ["MODES", "window_changes"]

_AUTO, _CHANGELOG, _DIFF, _APPENDS = MODES = ("auto", "changelog", "diff", "appends")
"""The modes of ``changes``.

- ``changelog``: the changes commit by commit.
- ``diff``: the difference between the two snapshots.
- ``auto``: ``diff`` between two tags or branches, and between two times if the snapshot of the
  first time was rolled back. Otherwise ``changelog``.
- ``appends``: only commits that neither delete nor overwrite rows.
"""
_INSERTED = pa.scalar("+I", pa.string())


@dataclass(frozen=True, slots=True)
class _SnapshotRange:
    """The ids of the snapshot before a window (``after``) and of its last snapshot (``upto``).

    None means the time before the first snapshot.
    """

    loaded: LoadedMetadata
    after: int | None
    upto: int | None

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots in the window, oldest first."""
        if self.upto is None:
            return []
        return snapshots_between(self.loaded.metadata, self.after, self.upto)

    @property
    def is_moved(self) -> bool:
        """True if ``after`` is not in the history of ``upto``, for example after a rollback."""
        ancestry = self.loaded.metadata.ancestry(self.upto)
        return self.after is not None and all(each.snapshot_id != self.after for each in ancestry)

    def state(self, snapshot_id: int | None) -> TableState:
        """Return a snapshot's state with the current columns; for None a state without rows."""
        places, metadata = self.loaded.places, self.loaded.metadata
        if snapshot_id is None:
            return TableState(places, metadata, None, metadata.schema)
        found = find_state(places, metadata, snapshot=snapshot_id)
        return replace(found, schema=metadata.schema)


def window_changes(
    loaded: LoadedMetadata,
    history: BranchHistory,
    after: WindowEnd,
    upto: WindowEnd | None,
    mode: str,
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    partitions: Partitions | None = None,
    keys: Sequence[str] | None = None,
) -> Rows:
    """Return the changes in a window; the column ``rowkind`` precedes the columns of the table.

    Raise ``InvalidRequestError`` for an unknown mode or column, and if the time ``upto`` is before
    the time ``after``. Raise ``NotFoundError`` if an end does not exist, or if a needed snapshot
    has expired.
    """
    if mode not in MODES:
        raise InvalidRequestError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    match after, upto:
        case datetime(), datetime() if to_millis(upto) < to_millis(after):
            raise InvalidRequestError(
                f"the window of changes of {loaded.places.uri} ends before it starts: 'after' is "
                f"{after} and 'upto' is {upto}. Swap the two arguments"
            )
    window = _SnapshotRange(
        loaded,
        _snapshot_id(loaded, history, after),
        _head(history) if upto is None else _snapshot_id(loaded, history, upto),
    )
    if mode == _AUTO:
        are_times = isinstance(after, datetime) and (upto is None or isinstance(upto, datetime))
        is_moved = are_times and window.is_moved
        tags = _is_tag(loaded, after) and _is_tag(loaded, upto)
        mode = _DIFF if tags or is_moved else _CHANGELOG
    if mode == _APPENDS:
        return _appended(window, history, columns, where, partitions)
    asked = asked_rows(
        loaded.metadata, columns=columns, where=where, partitions=partitions, keys=keys
    )
    if mode == _DIFF:
        ends = window.state(window.after), window.state(window.upto)
        return Rows(asked.arrow_schema, lambda: changed_rows(*ends, asked))
    commits = [window.state(each.snapshot_id) for each in window.snapshots()]
    for first in commits[:1]:
        commit_changes(first, asked)  # raises an error before any row is read
    return Rows(asked.arrow_schema, lambda: _by_commit(commits, asked))


def _by_commit(commits: Sequence[TableState], asked: AskedRows) -> Iterator[pa.RecordBatch]:
    for each in commits:
        yield from commit_changes(each, asked)


def _appended(
    window: _SnapshotRange,
    history: BranchHistory,
    columns: Sequence[str] | None,
    where: Where | None,
    partitions: Partitions | None,
) -> Rows:
    state, metadata = window.state(_head(history)), window.loaded.metadata
    asked = row_filter(metadata, state.schema, where, partitions)
    appends = [each for each in window.snapshots() if each.operation == APPEND]
    found = AppendedRows(state, appends, columns, asked)
    require_one_kind(found.schema.names)
    return Rows(pa.schema([ROW_KIND, *found.schema]), lambda: _inserted(found))


def _inserted(rows: AppendedRows) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([ROW_KIND, *rows.schema])
    for batch in rows.to_batches():
        kinds = pa.repeat(_INSERTED, batch.num_rows)
        yield pa.RecordBatch.from_arrays([kinds, *batch.columns], schema=schema)


def _head(history: BranchHistory) -> int | None:
    return history.snapshots[-1].snapshot_id if history.snapshots else None


def _is_tag(loaded: LoadedMetadata, end: WindowEnd | None) -> bool:
    return isinstance(end, str) and end in loaded.metadata.references


def _snapshot_id(loaded: LoadedMetadata, history: BranchHistory, end: WindowEnd) -> int | None:
    """Return the id of the snapshot at one end of a window; None for the beginning.

    An int that is neither the id nor the sequence number of a snapshot is returned unchanged. Raise
    ``NotFoundError`` for an unknown name, for a position if the changes after it cannot be read,
    and for a time if its snapshot is unknown because snapshots have expired.
    """
    if isinstance(end, datetime):
        return _snapshot_id_at(loaded, history, to_millis(end))
    if isinstance(end, str):
        if end in loaded.metadata.references:
            return loaded.metadata.references[end].snapshot_id
        end = _position(loaded, end)
    if (end.number if isinstance(end, Position) else end) == 0:
        return None
    if isinstance(end, Position):
        return _position_id(loaded, history, end)
    return snapshot_id_of(loaded, history, end)


def _snapshot_id_at(loaded: LoadedMetadata, history: BranchHistory, millis: int) -> int | None:
    """Return the id of the newest snapshot of the branch at a time; None if it had none yet.

    A window that ends at the time includes the changes of this snapshot. A window that begins at
    the same time starts after this snapshot. So each change is in exactly one of the two windows.
    Raise ``NotFoundError`` if the snapshots of that time have expired.
    """
    metadata = loaded.metadata
    found = newest_at(metadata, history, millis)
    if found is None and history.snapshots:
        log = metadata.snapshot_log if history.branch == MAIN_BRANCH else ()
        first = log[0].snapshot_id if log else history.snapshots[-1].snapshot_id
        require_beginning(metadata, first, millis)
    return found


def _position(loaded: LoadedMetadata, text: str) -> Position:
    try:
        return Position.parse(text)
    except InvalidRequestError:
        raise unknown_reference(loaded.metadata, text, loaded.places.uri) from None


def _position_id(loaded: LoadedMetadata, history: BranchHistory, end: Position) -> int | None:
    """Return the id of the newest snapshot up to a position; None if there is none.

    Raise ``NotFoundError`` if changes after the position cannot be read.
    """
    number, since = history.number(end), history.since(end, None)
    if since.missed or since.rewound:
        why = "has expired" if since.missed else "belongs to a history that a rollback removed"
        if not history.snapshots:
            why = f"is wrong, or {why}: the branch has no snapshots"
        elif number > (newest := history.snapshots[-1].snapshot.sequence_number):
            why = f"is wrong, or {why}: the newest snapshot has the sequence number {newest}"
        raise NotFoundError(
            f"position {end} of {loaded.places.uri} {why}. Read all rows with scan(), and then "
            "the changes after the snapshot of that scan"
        )
    if number < history.snapshots[0].snapshot.sequence_number:
        return history.snapshots[0].snapshot.parent_id
    return snapshot_id_of(loaded, history, end)
