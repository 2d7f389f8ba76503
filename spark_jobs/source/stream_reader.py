# SPDX-License-Identifier: Apache-2.0
"""Reads a table as a stream whose offsets are positions; each snapshot is read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

import lakeformat as lake
from lakeformat import Position
from lakeformat.types.sentence import sentence
from spark_jobs.frames.parts import PartWork
from spark_jobs.frames.plans import ReadPlan, plan_splits
from spark_jobs.frames.tables import Warehouse, require_streamed
from spark_jobs.frames.worker import prepare_worker
from spark_jobs.source.batch_reader import LakePartition
from spark_jobs.source.read_request import ReadRequest, time_of, whole_number

__all__ = ["LakeStreamReader", "RefusedStreamReader"]

_POSITION, _FULL = "position", "full_snapshot"
"""Keys of an offset: the position of the stream, and the snapshot whose full state comes before the
changes. Offsets of earlier versions, with ``next_snapshot`` and ``after``, are read as well."""
_INITIAL, _BEGAN = "initial", "began"
"""Keys of offsets. ``initial`` is true in the offset where a stream begins.

Spark stores only the ends of batches. When it repeats the first batch, it asks for the beginning
again, but by then the table may have new snapshots. So the end of the first batch has the beginning
under the key ``began``.
"""


_TABLE = "table"
"""Key of an offset: the identity of the table. Offsets of earlier versions lack it."""

_MODES_AT = {
    "scan.snapshot-id": ("from-snapshot", "from-snapshot-full"),
    "scan.timestamp": ("from-timestamp",),
    "scan.timestamp-millis": ("from-timestamp",),
}
"""Options for the start of a stream, each with the values of ``scan.mode`` that it needs."""


class StreamPartition(LakePartition):
    """The part of a batch that one task reads, with the position before the batch."""

    def __init__(self, work: PartWork, part: object, begins_after: Position) -> None:
        super().__init__(work, part)
        self.begins_after = begins_after


class LakeStreamReader(DataSourceStreamReader):
    """Reads changes, snapshot by snapshot. The table is opened again for each batch, to notice a
    new schema or a drop.
    """

    def __init__(
        self,
        asked: ReadRequest,
        options: Mapping[str, str],
        place: Warehouse,
        name: str,
        at_once: int,
    ) -> None:
        self._asked = asked
        self._table = require_streamed(asked.table)
        self._schema = self._table.schema
        """The schema when the stream began; that of ``self._table`` may be newer."""
        self._options = options
        self._place = place
        self._name = name
        self._at_once = at_once
        self._mode = _mode(options)
        self._consumer = options.get("consumer-id")
        self._most = whole_number("max-snapshots-per-batch", options.get("max-snapshots-per-batch"))
        if self._most is not None and self._most < 1:
            raise lake.InvalidRequestError(
                f"max-snapshots-per-batch must be at least 1, got {self._most}"
            )
        if (why := self._table.why_changes_delete) and not asked.is_kind_given:
            raise lake.InvalidRequestError(
                f"{self._table.location} {why}, so a stream of it includes deleted "
                "rows: set option('rowkind', 'true') to get the kind of each row in a first column "
                "'rowkind', or 'false' to leave out deleted rows"
            )
        self._position: Position | None = None
        """The position of the stream; None before the first call by Spark. In a new stream this
        call is ``latestOffset``, even before ``initialOffset``. After a restart it is
        ``partitions`` for the last batch, and the end of this batch becomes the position.
        """
        self._found: dict[str, Any] | None = None
        """The offset at which a new stream begins; None until the offset is found."""
        self._first_end: Position | None = None
        """The position at the end of the first batch of this process; None before this batch."""

    def initialOffset(self) -> dict[str, Any]:
        try:
            began = self._beginning()
        except lake.InvalidRequestError:
            raise
        except (
            lake.LakeError
        ):  # when Spark repeats the first batch, its end also contains the beginning
            return {_INITIAL: True}
        self._position = self._place_of(began)
        return {**began, _INITIAL: True}

    def latestOffset(self) -> dict[str, Any]:
        found = (
            self._beginning_if_any()
        )  # read before the end, so that the beginning is not after the end
        table = self._table_now()
        newest = table.position()
        position = self._position
        if position is not None and newest < position:
            raise self._another_history(position, f"the newest position is {_named(newest)}")
        if position is None and found:  # a stream that begins now
            position = self._place_of(found[_BEGAN])
        if self._most is not None and position is not None:
            newest = table.advance(position, self._most)
        self._position = newest
        if self._first_end is None:
            self._first_end = newest
        return {**self._offset(newest), **(found if newest == self._first_end else {})}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start.get(_INITIAL):
            start = end.get(_BEGAN, start)
            if _FULL not in start:
                start = self._beginning()  # raises the reason if there is none
            # Move the consumer only after Spark has stored the end: until then a restart begins the
            # stream again, and would skip the existing rows because of the consumer.
            self._remember(self._first_read(start))
        self._position = self._place_of(end)
        now = self._table_now(at=self._place_of(start))
        self._require_same_table(now.identity, start, end)
        self._require_same_history(start, end)
        begins_after = self._first_read(start)
        try:
            plans = self._plans(start, end)
        except lake.NotFoundError as error:
            raise lake.NotFoundError(
                f"the stream stops{_shown(begins_after)}: {sentence(error)} Start a new "
                "stream, with its own checkpoint and a 'consumer-id', so that the table keeps "
                "unread snapshots"
            ) from error
        except lake.LakeError as error:
            self._stopped(error, begins_after)
            raise
        return [StreamPartition(p.work, part, begins_after) for p in plans for part in p.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, StreamPartition):
            return
        prepare_worker()
        try:
            yield from partition.work(partition.part)
        except lake.LakeError as error:
            self._stopped(error, partition.begins_after)
            raise

    def _stopped(self, error: lake.LakeError, begins_after: Position) -> None:
        self._table_now(at=begins_after)  # raises the reason if the table cannot be read
        error.add_note(f"the stream stops{_shown(begins_after)}")

    def commit(self, end: dict[str, Any]) -> None:
        self._remember(self._place_of(end))

    def _plans(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadPlan]:
        plans: list[ReadPlan] = []
        if start[_FULL] is not None:
            asked = self._asked
            scan = self._table.state_scan(start[_FULL], columns=asked.columns, where=asked.where)
            plans.append(plan_splits(scan, scan.splits(), self._at_once, with_kind=asked.with_kind))
        after, upto = self._place_of(start), self._place_of(end)
        if after < upto:
            plans.append(self._asked.plan_changes(after, upto, "auto", self._at_once))
        return plans

    def _beginning(self) -> dict[str, Any]:
        """Return the offset at which a new stream begins. The first call finds the offset; later
        calls return the same one, even if the table has new snapshots.
        """
        if self._found is None:
            options = self._options
            stream = self._table.stream(
                self._mode,
                snapshot=whole_number("scan.snapshot-id", options.get("scan.snapshot-id")),
                as_of=time_of(options),
                consumer=self._consumer,
                columns=self._asked.columns,
                where=self._asked.where,
            )
            found = stream.starts_at()
            self._found = {**self._offset(found.position), _FULL: found.full}
        return self._found

    def _beginning_if_any(self) -> dict[str, Any]:
        """Return a dict with the offset at which a new stream begins, under the key ``began``. The
        dict is empty if the offset cannot be found, for example because its snapshot has expired.

        A running stream does not need this offset. In a new stream ``partitions`` tries to find the
        offset again, and raises the error.
        """
        try:
            return {_BEGAN: self._beginning()}
        except lake.LakeError:
            return {}

    def _offset(self, position: Position) -> dict[str, Any]:
        """Return the stream offset for ``position``. It includes the identity of the snapshot at
        this position, if the snapshot exists, and the identity of the table.
        """
        found = self._table.snapshot(position)
        at = str(position if found is None else found.position)
        return {_POSITION: at, _FULL: None, _TABLE: self._identity}

    @cached_property
    def _identity(self) -> str:
        identity: str = self._table.identity
        return identity

    def _place_of(self, offset: dict[str, Any]) -> Position:
        found: Position = self._table.position(offset)
        return found

    def _first_read(self, offset: dict[str, Any]) -> Position:
        """Return the position after which a read from ``offset`` begins.

        If a snapshot must first be read in full, this is the position right before that snapshot,
        else the position of ``offset``.
        """
        if offset[_FULL] is None:
            return self._place_of(offset)
        full: Position = self._table.position(offset[_FULL])
        return full.before

    def _require_same_table(self, identity: str, *offsets: dict[str, Any]) -> None:
        """Raise ``NotFoundError`` if an offset belongs to a table with another identity. The
        check does not need the snapshot of the offset, which may have expired.
        """
        for offset in offsets:
            if offset.get(_TABLE) not in (None, "", identity):
                raise self._another_history(
                    self._place_of(offset), "another table has this name now"
                )

    def _require_same_history(self, *offsets: dict[str, Any]) -> None:
        """Raise ``NotFoundError`` if the snapshots at the offsets are not those that the stream has
        read: a rollback, or a new table, reuses snapshot numbers.
        """
        for position in map(self._place_of, offsets):
            found = self._table.snapshot(position)
            if found is not None and position.identity not in (None, found.identity):
                raise self._another_history(
                    position, f"snapshot {found.id} is a different snapshot now"
                )
        start, end = map(self._place_of, offsets)
        if end < start:
            raise self._another_history(start, f"the newest position is {_named(end)}")

    def _another_history(self, position: Position, found: str) -> lake.NotFoundError:
        return lake.NotFoundError(
            f"the stream has read {self._table.location} up to {_named(position)}, but {found}: "
            "the table was rolled back or recreated. The stream stops here: start a new stream, "
            "with a checkpoint of its own"
        )

    def _remember(self, position: Position) -> None:
        """Move the consumer, if there is one, so that snapshots up to the position may expire."""
        if self._consumer is None:
            return
        try:
            self._table.consumers.set(self._consumer, after=position)
        except lake.InvalidRequestError as error:
            if not self._table.since(position, position).rewound:
                raise
            raise self._another_history(position, "this position was removed") from error

    def _table_now(self, at: Position | None = None) -> Any:
        """Open the table again. Raise ``NotFoundError`` if the table was dropped, and
        ``InvalidRequestError`` if its columns have changed. The error names the position ``at``,
        by default the position of the stream.
        """
        where = _shown(self._position if at is None else at)
        try:
            now: Any = self._place.table_of_any_format(self._name)
        except lake.NotFoundError as error:
            raise lake.NotFoundError(f"the stream stops{where}: {error}") from error
        then = self._schema
        columns = [[field.without_comment() for field in s.fields] for s in (then, now.schema)]
        if columns[0] != columns[1]:
            before, after = (", ".join(f.name for f in s.fields) for s in (then, now.schema))
            how = f"then: {before}; now: {after}"
            if before == after:
                pairs = zip(then.fields, now.schema.fields, strict=True)
                changed = ", ".join(new.name for old, new in pairs if old != new)
                how = f"type or default of {changed}"
            raise lake.InvalidRequestError(
                f"the stream stops{where}: the columns of {now.location} have changed since the "
                f"stream began ({how}). Start the stream again from its checkpoint: it continues "
                "there, with the new columns"
            )
        return now


class RefusedStreamReader(DataSourceStreamReader):
    """A stream that cannot be read: every call raises the reason.

    Spark 4.1 would hide an error that is raised while the reader is created.
    """

    def __init__(self, reason: lake.LakeError) -> None:
        self._reason = reason

    def initialOffset(self) -> dict[str, Any]:
        raise self._reason

    def latestOffset(self) -> dict[str, Any]:
        raise self._reason

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._reason

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._reason


def _shown(position: Position | None) -> str:
    if position is None:
        return ""
    return f" after {_named(position)}" if any(position.numbers) else " before its first snapshot"


def _named(position: Position) -> str:
    numbers = ".".join(map(str, position.numbers))
    return f"{'snapshot' if len(position.numbers) == 1 else 'position'} {numbers}"


def _mode(options: Mapping[str, str]) -> str:
    """Return the start mode of a stream. Raise ``InvalidRequestError`` if ``options`` lacks the
    option that this mode needs, or has one that belongs to another mode.
    """
    mode = options.get("scan.mode", "latest-full").lower()
    for name, modes in _MODES_AT.items():
        if name in options and mode not in modes:
            raise lake.InvalidRequestError(
                f"option {name!r} needs another 'scan.mode' than {mode!r}: set 'scan.mode' to "
                f"{' or '.join(map(repr, modes))}, or leave out {name!r}"
            )
    wanted = [name for name, modes in _MODES_AT.items() if mode in modes]
    if wanted and not any(name in options for name in wanted):
        raise lake.InvalidRequestError(
            f"option 'scan.mode' {mode!r} needs option {' or '.join(map(repr, wanted))}: add it, "
            "or choose another mode"
        )
    return mode
