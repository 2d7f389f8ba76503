# SPDX-License-Identifier: Apache-2.0
"""Changes of a branch: the rows that its appends added in a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.appends import AppendedRows, OtherCommits, appends_between, newest_at
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.table.branch_history import BranchHistory
from lakeformat.iceberg.table.choice import snapshot_id_of
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions, WindowEnd
from lakeformat.tables.moment import to_millis
from lakeformat.tables.position import Position
from lakeformat.tables.results import Rows

__all__ = ["MODES", "appended_rows"]

MODES = ("auto", "appends")
"""``appends`` leaves out commits that delete or overwrite rows; ``auto`` refuses them."""
_ROW_KIND = pa.field("rowkind", pa.string(), nullable=False)
_INSERTED = pa.scalar("+I", pa.string())


def appended_rows(
    loaded: LoadedMetadata,
    history: BranchHistory,
    after: WindowEnd,
    upto: WindowEnd | None,
    mode: str,
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    partitions: Partitions | None = None,
) -> Rows:
    """Return the rows of a window, with the column ``rowkind`` before those of the table."""
    if mode not in MODES:
        raise InvalidRequestError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    metadata = loaded.metadata
    first = _snapshot_id(loaded, history, after)
    last = _head(history) if upto is None else _snapshot_id(loaded, history, upto)
    window: list[Snapshot] = []
    if last is not None:
        others: OtherCommits = "skip" if mode == "appends" else "fail"
        window = appends_between(metadata, first, last, other_commits=others)
    head = _head(history)
    state = TableState(
        loaded.places,
        metadata,
        None if head is None else metadata.snapshot(head),
        metadata.schema,
    )
    asked = row_filter(metadata, state.schema, where, partitions)
    found = AppendedRows(state, window, columns, asked)
    return Rows(pa.schema([_ROW_KIND, *found.schema]), lambda: _inserted(found))


def _inserted(rows: AppendedRows) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([_ROW_KIND, *rows.schema])
    for batch in rows.to_batches():
        kinds = pa.repeat(_INSERTED, batch.num_rows)
        yield pa.RecordBatch.from_arrays([kinds, *batch.columns], schema=schema)


def _head(history: BranchHistory) -> int | None:
    return history.snapshots[-1].snapshot_id if history.snapshots else None


def _snapshot_id(loaded: LoadedMetadata, history: BranchHistory, end: WindowEnd) -> int | None:
    """Return the last snapshot before an end of a window; None at the beginning."""
    if isinstance(end, datetime):
        head = _head(history)
        return None if head is None else newest_at(loaded.metadata, head, to_millis(end))
    if isinstance(end, str):
        if end in loaded.metadata.references:
            return loaded.metadata.references[end].snapshot_id
        end = Position.parse(end)
    if (end.number if isinstance(end, Position) else end) == 0:
        return None
    return snapshot_id_of(loaded, history, end)
