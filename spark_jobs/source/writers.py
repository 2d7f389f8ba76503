# SPDX-License-Identifier: Apache-2.0
"""Writes rows in Spark's tasks and commits them in the driver, for batches and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.tables.arguments import Overwritten
from lakeformat.tables.named_once import named_once
from spark_jobs.frames.publish import publish
from spark_jobs.frames.spark_write import require_one_writer, write_in_task
from spark_jobs.frames.worker import prepare_worker
from spark_jobs.source.read_request import whole_number
from spark_jobs.source.unknown_outcome import is_unknown, mark_unknown

__all__ = ["LakeStreamWriter", "LakeWriter", "Written", "written_as"]

_TRIES = 5


def _new_commit() -> lake.CommitId:
    return lake.CommitId(f"spark-{SYSTEM.new_id()}", 1)


@dataclass(frozen=True, slots=True)
class Written:
    """The settings of a write and of its commit."""

    kinds: str | None
    overwrite: Overwritten | None
    query: str | None
    commit: lake.CommitId = field(default_factory=_new_commit)
    """The commit identity of a batch write. A stream does not use it: each of its batches has an
    identity of its own.
    """


class TaskAnswer(WriterCommitMessage):
    """The commit messages of one Spark task, or the error about its rows."""

    def __init__(
        self, messages: Sequence[bytes], refused: lake.LakeError | None, query: str | None
    ) -> None:
        self.messages = messages
        self.refused = refused
        self.query = query
        """The id of the streaming query; only tasks know it, not the writer in the driver."""


def written_as(options: Mapping[str, str], *, overwrite: bool) -> Written:
    """Return the settings of a write from its options; raise ``InvalidRequestError`` for invalid or
    contradicting options.
    """
    user = options.get("commit-user")
    identifier = whole_number("commit-identifier", options.get("commit-identifier"))
    if (user is None) != (identifier is None):
        raise lake.InvalidRequestError(
            "commit-user and commit-identifier belong together: give both, or neither"
        )
    replaced = _overwritten(options) if overwrite else None
    given = [name for name in ("overwrite-mode", "overwrite-partition") if name in options]
    if given and not overwrite:
        raise lake.InvalidRequestError(
            f"option {given[0]!r} needs mode('overwrite'): set this mode, or leave out {given[0]!r}"
        )
    how = Written(options.get("kinds"), replaced, options.get("query"))
    if user is None or identifier is None:
        return how
    return Written(how.kinds, replaced, how.query, lake.CommitId(user, identifier))


class _TaskWriter:
    """The shared part of the writers for batches and streams.

    ``write`` runs in the tasks, ``_commit`` and ``_abort`` run in the driver.
    """

    def __init__(self, table: lake.Table, how: Written) -> None:
        self._table = table
        self._how = how

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        first = next(iterator, None)
        if first is None:
            return TaskAnswer([], None, query)
        prepare_worker()
        how = self._how
        answer = write_in_task(self._table, chain([first], iterator), how.kinds, how.overwrite)
        if isinstance(answer, lake.LakeError):
            return TaskAnswer([], answer, query)
        return TaskAnswer([message.to_bytes() for message in answer], None, query)

    def _commit(self, answers: Sequence[WriterCommitMessage | None], commit: lake.CommitId) -> None:
        messages = self._messages(answers)
        refused = [
            a.refused for a in answers if isinstance(a, TaskAnswer) and a.refused is not None
        ]
        if refused:
            raise refused[0]  # Spark then calls abort, which deletes the files
        require_one_writer(self._table, messages)
        for tries_left in reversed(range(_TRIES)):
            try:
                publish(self._table, messages, overwrite=self._how.overwrite, commit=commit)
            except lake.CommitOutcomeUnknownError:
                if not tries_left:
                    mark_unknown(commit)  # Spark then calls abort, but the files must be kept
                    raise
            else:
                return

    def _abort(self, answers: Sequence[WriterCommitMessage | None], commit: lake.CommitId) -> None:
        messages = self._messages(answers)
        if not messages or is_unknown(commit):
            return
        try:
            self._table.abort(messages)
        except lake.InvalidRequestError:
            return  # the table uses the files, or they are already deleted

    def _messages(self, answers: Sequence[WriterCommitMessage | None]) -> list[lake.CommitMessage]:
        return [
            self._table.read_message(message)
            for answer in answers
            if isinstance(answer, TaskAnswer)
            for message in answer.messages
        ]


class LakeWriter(_TaskWriter, DataSourceArrowWriter):
    """Commits a batch write once."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._commit(messages, self._how.commit)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._abort(messages, self._how.commit)


class LakeStreamWriter(_TaskWriter, DataSourceStreamArrowWriter):
    """Commits each batch of a stream once; a repeated batch publishes nothing."""

    def __init__(self, table: lake.Table, how: Written, now: Callable[[], lake.Table]) -> None:
        """``now`` opens the table again, because columns may be dropped while the stream runs."""
        super().__init__(table, how)
        self._now = now

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        if not messages:
            return
        commit = self._commit_id(messages, batchId)
        self._require_columns(batchId)
        with self._table.stream_batch(commit, checkpoint=_query_id(messages)) as noted:
            if noted is None:
                # The batch is committed, even if a changed query now gives other rows.
                self._abort(messages, commit)
            else:
                self._commit(messages, noted)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        if any(isinstance(answer, TaskAnswer) for answer in messages):
            self._abort(messages, self._commit_id(messages, batchId))

    def _require_columns(self, batch: int) -> None:
        """Raise ``InvalidRequestError`` if the table has lost a column since the stream began:
        values of this column would be written and never read. Raise ``NotFoundError`` if the table
        was dropped.

        ``batch`` is the number of the next batch, for the message.
        """
        where = f"the stream stops, before its batch {batch}"
        try:
            now = self._now().schema
        except lake.NotFoundError as error:
            raise lake.NotFoundError(f"{where}: {error}") from error
        there = {field.id for field in now.fields}
        gone = [field.name for field in self._table.schema.fields if field.id not in there]
        if gone:
            raise lake.InvalidRequestError(
                f"{where}: {self._table.location} has no column {', '.join(map(repr, gone))} any "
                f"more; its columns are {', '.join(field.name for field in now.fields)}. Start the "
                "stream again from its checkpoint, with these columns: it continues with this batch"
            )

    def _commit_id(
        self, messages: Sequence[WriterCommitMessage | None], batch: int
    ) -> lake.CommitId:
        user = self._how.query or _query_id(messages)
        if user is None:
            raise lake.InvalidRequestError(
                "the id of the query is unknown: set option 'query', a name that is the same in "
                "every run of this stream and that no other stream uses"
            )
        return lake.CommitId(f"spark-{user}", batch)


def _query_id(answers: Sequence[WriterCommitMessage | None]) -> str | None:
    """Return the id of the query, which is stored in its checkpoint; None if it is unknown."""
    known = (a.query for a in answers if isinstance(a, TaskAnswer) and a.query is not None)
    return next(known, None)


def _overwritten(options: Mapping[str, str]) -> Overwritten:
    mode = options.get("overwrite-mode", "static").lower()
    partition = options.get("overwrite-partition")
    if mode not in ("static", "dynamic"):
        raise lake.InvalidRequestError(f"overwrite-mode must be static or dynamic, got {mode!r}")
    if partition is None:
        return {} if mode == "static" else "dynamic"
    if mode == "dynamic":
        raise lake.InvalidRequestError(
            "overwrite-mode 'dynamic' replaces the partitions that get rows: leave out "
            "overwrite-partition"
        )
    pairs = [pair.partition("=") for pair in partition.split(",")]
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise lake.InvalidRequestError(
            f"overwrite-partition must be values of partition columns, such as 'dt=2024-01-01', "
            f"got {partition!r}"
        )
    return named_once("column", ((name.strip(), value.strip()) for name, _, value in pairs))
