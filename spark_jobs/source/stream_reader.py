"""Reads a table as a stream: offsets are snapshots, and each is read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

import lakeformat as lake
from spark_jobs.frames.plans import ReadPlan, plan_changes, plan_splits
from spark_jobs.frames.tables import Place
from spark_jobs.source.asked import Asked, time_of, whole_number
from spark_jobs.source.batch_reader import Part

__all__ = ["LakeStreamReader"]

_NEXT, _FULL = "next_snapshot", "full_snapshot"
"""An offset: the snapshot whose changes come next, and the one all rows of come before."""


class LakeStreamReader(DataSourceStreamReader):
    """Changes, snapshot by snapshot; the table is opened anew for each batch, to see it change."""

    def __init__(
        self, asked: Asked, said: Mapping[str, str], place: Place, name: str, at_once: int
    ) -> None:
        self._asked = asked
        self._said = said
        self._place = place
        self._name = name
        self._at_once = at_once
        self._consumer = said.get("consumer-id")
        self._most = whole_number("max-snapshots-per-batch", said.get("max-snapshots-per-batch"))
        if self._most is not None and self._most < 1:
            raise lake.InvalidRequestError(
                f"max-snapshots-per-batch is 1 or more, got {self._most}"
            )
        if asked.table.schema.primary_keys and not asked.is_kind_said:
            raise lake.InvalidRequestError(
                f"{asked.table.location} has a primary key, so a stream of it has rows that go: "
                "say option('rowkind', 'true') to get with each row what it does, in a first "
                "column 'rowkind', or 'false' to leave out rows that go"
            )
        self._position: int | None = None
        """The snapshot that comes next; None after a restart, until Spark says it."""

    def initialOffset(self) -> dict[str, Any]:
        said = self._said
        mode = said.get("scan.mode", "latest-full").lower()
        stream = self._asked.table.stream(
            mode,
            snapshot=whole_number("scan.snapshot-id", said.get("scan.snapshot-id")),
            as_of=time_of(said),
            consumer=self._consumer,
            **self._asked.of_changes,
        )
        found = stream.starts_at()
        self._position = found.next_snapshot
        self._remember(found.next_snapshot if found.full is None else found.full)
        return {_NEXT: found.next_snapshot, _FULL: found.full}

    def latestOffset(self) -> dict[str, Any]:
        newest = self._table_now().latest_snapshot()
        following = 1 if newest is None else newest.id + 1
        position = self._position
        if position is not None:
            if following < position:
                raise lake.NotFoundError(
                    f"snapshot {position} of {self._asked.table.location} comes next, and its "
                    f"newest is {following - 1}: it was rolled back or made anew. The stream stops "
                    "here; start another one, with a checkpoint of its own"
                )
            if self._most is not None:
                following = min(following, position + self._most)
        self._position = following
        return {_NEXT: following, _FULL: None}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._position = end[_NEXT]
        self._table_now(at=start[_NEXT])
        plans: list[ReadPlan] = []
        if start[_FULL] is not None:
            scan = self._asked.table.state_scan(start[_FULL], **self._asked.of_changes)
            plans.append(
                plan_splits(scan, scan.splits(), self._at_once, with_kind=self._asked.with_kind)
            )
        plans += map(self._changes, range(start[_NEXT], end[_NEXT]))
        return [Part(plan.work, part) for plan in plans for part in plan.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Part):
            return iter(())
        return iter(partition.work(partition.part))

    def commit(self, end: dict[str, Any]) -> None:
        self._remember(end[_NEXT])

    def _changes(self, snapshot: int) -> ReadPlan:
        asked = self._asked
        return plan_changes(
            asked.table, snapshot - 1, snapshot, "auto", asked.of_changes, with_kind=asked.with_kind
        )

    def _remember(self, snapshot: int) -> None:
        """What comes before it may expire."""
        if self._consumer is not None:
            self._asked.table.consumers.set(self._consumer, next_snapshot=snapshot)

    def _table_now(self, at: int | None = None) -> lake.Table:
        """The table, if it is still there and looks as it did."""
        next_snapshot = self._position if at is None else at
        where = "" if next_snapshot is None else f", before snapshot {next_snapshot}"
        try:
            now = self._place.table(self._name)
        except lake.NotFoundError as error:
            raise lake.NotFoundError(f"the stream stops{where}: {error}") from error
        then = self._asked.table.schema
        if now.schema.fields != then.fields:
            before, after = (", ".join(f.name for f in s.fields) for s in (then, now.schema))
            raise lake.InvalidRequestError(
                f"the stream stops{where}: the columns of {now.location} have changed since it "
                f"began (schema-{then.id}: {before}; schema-{now.schema.id}: {after}). Start it "
                "again from its checkpoint to go on there with the new ones"
            )
        return now
