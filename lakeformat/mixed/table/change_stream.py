# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of a Mixed table between two positions, or as a stream, commit by commit.

The commits of the change store have the changes. Commits that optimize the table, or remove merged
changes, change no row and are skipped. An overwrite of the base store and the adoption of the table
change rows, but no store has these changes. Reading changes across such a commit raises
``UnsupportedError``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import ge

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.iceberg.read.asked_rows import AskedRows
from lakeformat.iceberg.read.plan import TableState
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.table.commit_changes import commit_changes
from lakeformat.mixed.table.consumers import MixedConsumers
from lakeformat.mixed.table.find_state import find_state
from lakeformat.mixed.table.mixed_history import MixedHistory, MixedSnapshot, mixed_history
from lakeformat.tables.arguments import WindowEnd
from lakeformat.tables.moment import to_millis
from lakeformat.tables.position import Position
from lakeformat.tables.position_stream import PositionStream, position_before
from lakeformat.tables.results import Rows
from lakeformat.tables.stream import StreamedChanges, StreamStart

__all__ = ["MixedChangeStream", "changes_between"]

_REWRITE = "COMPACT"
_INSERTED = pa.scalar("+I", pa.string())


def changes_between(
    pair: LoadedPair,
    history: MixedHistory,
    after: WindowEnd,
    upto: WindowEnd | None,
    asked: AskedRows,
) -> Rows:
    """Return the changes after a position, up to and including another, commit by commit.

    ``asked`` has the columns and conditions of the reader. Raise ``NotFoundError`` if commits
    between the two positions are missing, ``InvalidRequestError`` if ``upto`` is before ``after``,
    and ``UnsupportedError`` for a commit whose changes no store has.
    """
    first = _position(history, after)
    last = history.head if upto is None else _position(history, upto)
    commits = _with_changes(history, first, last)

    def batches() -> Iterator[pa.RecordBatch]:
        for each in commits:
            yield from _changes_of(pair, each, asked)

    return Rows(asked.arrow_schema, batches)


class MixedChangeStream(PositionStream[MixedSnapshot]):
    """Delivers one commit after the other; commits that change no row are skipped."""

    def __init__(
        self, pair: StorePair, start: StreamStart, asked: AskedRows, consumer: str | None = None
    ) -> None:
        self._pair = pair
        self._asked = asked
        super().__init__(start, asked.arrow_schema, MixedConsumers(pair), consumer)

    def _next_changes(self, place: Position) -> StreamedChanges | None:
        pair = self._pair.load()
        history = mixed_history(pair)
        for each in _following(history, place, None, self._consumer):
            _require_known(history, each)
            self._place = each.position
            if _has_changes(each):
                return self._streamed(each, _changes_of(pair, each, self._asked), full=False)
        return None

    def _first_full(self, start: StreamStart) -> MixedSnapshot | None:
        history = self._history()
        if start.mode == "from-snapshot-full":
            return self._chosen(history)
        readable = [each for each in history.snapshots if each.is_readable]
        if start.mode == "compacted-full":
            merged = [e for e in readable if e.store == "base" and e.commit_kind == _REWRITE]
            readable = merged or readable
        return readable[-1] if readable else None

    def _first_place(self, start: StreamStart) -> Position:
        history = self._history()
        if start.mode == "from-snapshot":
            chosen = self._chosen(history)
            place = history.snapshots.index(chosen)
            return history.snapshots[place - 1].position if place else history.oldest
        if start.as_of is None:
            return history.head
        return position_before(history, to_millis(start.as_of))

    def _all_rows(self, snapshot: MixedSnapshot) -> Iterator[pa.RecordBatch]:
        pair, asked = self._pair.load(), self._asked
        then = find_state(pair, mixed_history(pair), snapshot=snapshot.position)
        state = then.with_schema(asked.schema)
        where = asked.filters[0] if len(asked.filters) == 1 else None
        scan = MixedScan(state, [each.name for each in asked.filtered_fields], where)
        for batch in scan.to_batches():
            for each in asked.filters:
                batch = batch.filter(each.mask(batch))
            found = asked.result(pa.repeat(_INSERTED, batch.num_rows), batch)
            if found.num_rows:
                yield found

    def _chosen(self, history: MixedHistory) -> MixedSnapshot:
        assert self._start.snapshot is not None
        return history.at(self._start.snapshot)

    def _history(self) -> MixedHistory:
        return mixed_history(self._pair.load())


def _position(history: MixedHistory, end: WindowEnd) -> Position:
    """Return the position at one end of a window.

    If ``end`` is a datetime, return the position right after the last commit at or before ``end``;
    without such a commit, the oldest position.
    """
    if isinstance(end, datetime):
        return position_before(history, to_millis(end) + 1)
    return history.parse(Position.parse(end) if isinstance(end, str) else end)


def _following(
    history: MixedHistory, after: Position, upto: Position | None, consumer: str | None
) -> Sequence[MixedSnapshot]:
    """Return the snapshots after the position ``after``, up to ``upto``.

    Raise ``NotFoundError`` if some have expired or were rolled back. ``consumer`` is the consumer
    to name in the message.
    """
    since = history.since(after, upto)
    if not (since.missed or since.rewound):
        return since.snapshots
    why = "have expired" if since.missed else "belong to a history that a rollback removed"
    first = "" if consumer is None else f"First call table.consumers.reset({consumer!r}). "
    longer = ""
    if since.missed:
        longer = ". For a slow reader keep snapshots longer, with 'change.data.ttl.minutes' and "
        longer += "'snapshot.keep.duration'" + ", or give it a consumer" * (consumer is None)
    raise NotFoundError(
        f"the commits that follow position {after} of {history.uri} {why}. {first}Read all rows "
        f"again, with scan() or a stream that starts with a full read{longer}"
    )


def _with_changes(
    history: MixedHistory, after: Position, upto: Position
) -> Sequence[MixedSnapshot]:
    found = _following(history, after, upto, None)
    if after != upto and all(map(ge, after.numbers, upto.numbers)):
        raise InvalidRequestError(
            f"the window of changes of {history.uri} ends before it starts: 'after' is position "
            f"{after} and 'upto' is position {upto}. Swap the two arguments"
        )
    for each in found:
        _require_known(history, each)
    return [each for each in found if _has_changes(each)]


def _require_known(history: MixedHistory, snapshot: MixedSnapshot) -> None:
    """Raise ``UnsupportedError`` for an overwrite or an adoption: no store has its changes."""
    if snapshot.store == "base" and snapshot.commit_kind != _REWRITE:
        after = snapshot.position
        raise UnsupportedError(
            f"snapshot {snapshot.snapshot_id} of {history.uri} is an overwrite or an adoption, "
            "and the change store does not have its changes. Read all rows once, with "
            f"table.scan(snapshot=table.position('{after}')). Then read the changes after this "
            "position; to move a consumer there, call "
            f"table.consumers.set(id, after=table.position('{after}')). In Spark, delete the "
            "consumer, if there is one, and start a stream with a new checkpoint: the new stream "
            "delivers all rows first"
        )


def _has_changes(snapshot: MixedSnapshot) -> bool:
    """Return True for a commit of the change store that may change rows.

    An empty commit that begins or ends a batch, and a removal of merged changes, change none.
    """
    summary = snapshot.of_store.summary
    is_empty = "total-data-files" in summary and "added-data-files" not in summary
    return snapshot.store == "change" and snapshot.commit_kind != _REWRITE and not is_empty


def _changes_of(
    pair: LoadedPair, snapshot: MixedSnapshot, asked: AskedRows
) -> Iterator[pa.RecordBatch]:
    change = pair.change
    state = TableState(change.places, change.metadata, snapshot.of_store.snapshot, asked.schema)
    return commit_changes(state, pair.key, pair.version, asked)
