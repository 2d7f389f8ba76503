# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of a DataFrame into a table: Spark's tasks write files, the driver makes one
commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import lakeformat as lake
from lakeformat.tables.arguments import Conflict, Overwritten, PartitionSpec
from lakeformat.tables.position import AnyPosition
from lakeformat.tables.table import refuse_operation
from lakeformat.types.closest import closest
from spark_jobs.frames.executor import SparkExecutor
from spark_jobs.frames.parts import classic_context
from spark_jobs.frames.publish import publish
from spark_jobs.frames.spark_write import begun, in_order, write_changes, write_rows
from spark_jobs.frames.tables import TableName, find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["WriteMode", "write_stream_batch", "write_table"]

WriteMode = Literal["append", "overwrite", "dynamic", "partitions", "table"]
_MODES = get_args(WriteMode)

_Stream: TypeAlias = tuple[str, str, str]
"""The location of a table, its branch, and the user of the commits."""
_PUBLISHED: dict[_Stream, tuple[tuple[str, int], frozenset[int]]] = {}
"""By stream: the id of its newest run, the number of its newest batch, and the hashes of the frames
that this batch published.
"""


def write_table(
    frame: DataFrame,
    table: TableName,
    *,
    mode: WriteMode = "append",
    partitions: PartitionSpec | None = None,
    where: str | None = None,
    kinds: str | None = None,
    upsert_by: Sequence[str] | None = None,
    sequence_by: Sequence[str] | None = None,
    commit: lake.CommitId | None = None,
    watermark: int | None = None,
    properties: Mapping[str, str] | None = None,
    read_snapshot: AnyPosition | str | None = None,
    conflict: Conflict | None = None,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> lake.CommitReport:
    """Write all rows in one commit, and return its report. With the same ``commit`` a second call
    publishes nothing, and returns the first report.

    ``mode``: ``append`` adds rows, as upserts if the table has a primary key. ``overwrite``
    replaces all rows; with ``partitions`` only the rows of these partitions. For a Mixed table,
    ``where`` may select the rows to replace: a SQL condition on partition columns, which each new
    row must meet, too. The modes ``table``, ``partitions`` and ``dynamic`` have the meaning that
    ``Table.write`` describes for ``overwrite``.

    ``kinds`` is the column with the kind of each row ('+I', '-U', '+U' or '-D').

    ``upsert_by`` has the columns of a key; it is only for Iceberg and Mixed tables. In an Iceberg
    table the rows replace the stored rows with the same key, which Spark's tasks find. A Mixed
    table replaces rows by its own key, so ``upsert_by`` must be that key. With ``upsert_by`` and
    ``kinds``, rows can also be deleted. Then ``sequence_by`` has the columns that order the changes
    of a key, oldest first, and the last change wins. Nulls come first; changes with equal values
    have no order.

    For a table with buckets the rows are shuffled and sorted, so that each bucket has one writer.
    In a Mixed table each node (a hash bucket) has one writer. A DataFrame has no order. If it has
    two rows with the same key, the table's option ``sequence.field`` must decide which is newer.
    For an Iceberg or Mixed table give ``kinds`` and ``sequence_by`` instead.

    ``watermark``, ``properties``, ``read_snapshot`` and ``conflict`` are those of ``Table.write``.
    With ``read_snapshot`` and ``conflict="transaction-order"``, the driver reads the keys of the
    written files before the commit. If other commits have changed one of these keys since
    ``read_snapshot``, the driver writes the rows again.

    Raises ``InvalidRequestError`` for wrong arguments or columns, and ``CommitConflictError`` after
    repeated conflicts.
    """
    found = find_table(frame.sparkSession, table, warehouse, catalog_options)
    overwrite = _overwritten(mode, partitions, where)
    tasks = None
    if upsert_by is not None:
        _require_upsert(found, mode, kinds, sequence_by)
        tasks = SparkExecutor(frame.sparkSession)
    elif kinds is not None and "kinds" in found.refused_arguments.get("write", {}):
        raise lake.InvalidRequestError(
            f"kinds={kinds!r} needs a key by which the rows of {found.location} are found: name "
            "the columns of the key in upsert_by, and those that order the changes in sequence_by"
        )
    elif sequence_by is not None:
        raise lake.InvalidRequestError(
            "sequence_by orders the changes of a key: "
            + (
                "give the columns of the key in upsert_by, too"
                if "upsert" in found.operations
                else "leave it out, because in a Paimon table the option 'sequence.field' orders "
                "them"
            )
        )
    if commit is not None and (done := found.find_commit(commit)):
        return done
    with begun(found, overwrite, conflict, where=where) as batch:
        order = in_order(found, read_snapshot, conflict, upsert_by, batch)
        if upsert_by is not None and kinds is not None:
            messages = write_changes(frame, found, kinds, upsert_by, sequence_by or (), order)
        else:
            messages = write_rows(frame, found, kinds=kinds, overwrite=overwrite, order=order)
        return publish(
            found,
            messages,
            overwrite=overwrite,
            where=where,
            commit=commit,
            watermark=watermark,
            properties=properties,
            read_snapshot=read_snapshot,
            conflict=conflict,
            upsert_by=upsert_by,
            executor=tasks,
            batch=batch,
        )


def write_stream_batch(
    table: TableName,
    *,
    kinds: str | None = None,
    upsert_by: Sequence[str] | None = None,
    sequence_by: Sequence[str] | None = None,
    query: str | None = None,
    warehouse: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that writes each batch of a stream once.

    The function calls ``write_table`` with ``kinds``, ``upsert_by`` and ``sequence_by``. The commit
    identity of a batch is the user ``spark-<query>`` and the number of the batch. By default,
    ``query`` is the id of the streaming query, which Spark stores in the checkpoint. A name
    that you give must be the same in all runs of the stream; a new checkpoint needs a new name. If
    a batch has several writes to a table, give each further write its own ``query``.

    The returned function raises ``NotFoundError`` for a missing table, ``InvalidRequestError`` if
    the batch would be taken for another one that is already published, and the errors of
    ``write_table``.
    """

    def write(frame: DataFrame, batch: int) -> None:
        checkpoint = _local_property(frame, "sql.streaming.queryId")
        commit = lake.CommitId(f"spark-{query or _known(checkpoint)}", batch)
        found = find_table(frame.sparkSession, table, warehouse, catalog_options)
        stream = found.location, found.branch, commit.user
        with found.stream_batch(commit, checkpoint=checkpoint) as noted:
            if noted is None:
                _require_repetition(frame, stream, batch)
            else:
                write_table(
                    frame,
                    found,
                    kinds=kinds,
                    upsert_by=upsert_by,
                    sequence_by=sequence_by,
                    commit=noted,
                )
        _remember(frame, stream, batch)

    return write


def _require_repetition(frame: DataFrame, stream: _Stream, batch: int) -> None:
    """Raise ``InvalidRequestError`` if the same run of the stream has published the batch with
    other rows, so that the rows of ``frame`` would be lost.
    """
    plans = _published(frame, stream, batch)
    if plans and frame.semanticHash() not in plans:
        raise lake.InvalidRequestError(
            f"batch {batch} of this stream has already written other rows to {stream[0]} with the "
            f"commit user {stream[-1]!r}. These rows would count as the same commit, so they "
            "were not written. Do not change the first write of the batch to this table, but give "
            "each further write_stream_batch of this table its own 'query'. Then run the stream "
            "again"
        )


def _remember(frame: DataFrame, stream: _Stream, batch: int) -> None:
    """Record the rows that the running stream has published in the batch."""
    if run := _run_id(frame):
        plans = _published(frame, stream, batch) | {frame.semanticHash()}
        _PUBLISHED[stream] = (run, batch), plans


def _published(frame: DataFrame, stream: _Stream, batch: int) -> frozenset[int]:
    newest, plans = _PUBLISHED.get(stream, (None, frozenset()))
    return plans if newest == (_run_id(frame), batch) else frozenset()


def _run_id(frame: DataFrame) -> str | None:
    """Return the id of the run of a stream, which differs after a restart; None outside a stream.

    The id is read from Spark's list of running streams. It is not read from the name of Spark's job
    group, because the function for ``foreachBatch`` may set another group.
    """
    query = _local_property(frame, "sql.streaming.queryId")
    if query is None:
        return None
    session: Any = frame.sparkSession
    running = session._jsparkSession.sharedState().activeStreamingQueries()
    run = running.get(session._jvm.java.util.UUID.fromString(query))
    return None if run is None else str(run.runId().toString())


def _local_property(frame: DataFrame, name: str) -> str | None:
    context = classic_context(frame.sparkSession)
    return None if context is None else context.getLocalProperty(name)


def _known(query: str | None) -> str:
    """Return the id of the running stream query. Spark stores this id in the query's checkpoint, so
    it is the same after a restart. Raise ``InvalidRequestError`` if the id is unknown.
    """
    if query is None:
        raise lake.InvalidRequestError(
            "the id of the query is unknown: give write_stream_batch a 'query', a name that is "
            "the same in every run of this stream and that no other stream uses"
        )
    return query


def _require_upsert(
    table: lake.Table, mode: WriteMode, kinds: str | None, sequence_by: Sequence[str] | None
) -> None:
    """Raise ``UnsupportedError`` if the table has no upserts. Raise ``InvalidRequestError`` for a
    mode other than ``append``, and if only one of ``kinds`` and ``sequence_by`` is given.
    """
    if "upsert" not in table.operations:
        raise refuse_operation(table, "upsert")
    if mode != "append":
        raise lake.InvalidRequestError(
            f"upsert_by and mode={mode!r} exclude each other: leave one out"
        )
    if kinds is not None and not sequence_by:
        raise lake.InvalidRequestError(
            f"kinds={kinds!r} needs sequence_by, because the rows of a DataFrame have no order, "
            f"and the last change of each key of {table.location} wins: name the columns that "
            "order the changes, such as sequence_by=['event_time']"
        )
    if kinds is None and sequence_by is not None:
        raise lake.InvalidRequestError(
            "sequence_by orders changes, so it needs the row kinds: name their column, as in "
            "kinds='op', or leave out sequence_by"
        )


def _overwritten(
    mode: WriteMode, partitions: PartitionSpec | None, where: str | None
) -> Overwritten | None:
    if mode not in _MODES:
        raise lake.InvalidRequestError(
            f"mode must be one of {', '.join(_MODES)}, got {mode!r}{closest(mode, _MODES)}"
        )
    if partitions is not None and mode != "overwrite":
        raise lake.InvalidRequestError(
            f"partitions={partitions!r} needs mode='overwrite', got mode={mode!r}"
        )
    if where is not None and (mode != "overwrite" or partitions is not None):
        got = f"mode={mode!r}" if mode != "overwrite" else f"partitions={partitions!r}"
        raise lake.InvalidRequestError(
            f"where={where!r} needs mode='overwrite' without 'partitions', got {got}: correct "
            "'mode' or 'partitions', or leave out 'where'"
        )
    if mode == "append":
        return None
    return (partitions or {}) if mode == "overwrite" else mode
