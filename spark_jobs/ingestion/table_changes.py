# SPDX-License-Identifier: Apache-2.0
"""Writes the changes of one table into another, each once, even if a process crashes.

A consumer of the source table stores the position of the reader. The consumer is moved after the
commit. If the move fails, the snapshot of the commit still has the position at which the reading
ended.

The commit identity consists of the consumer and the position at which the previous commit ended; it
does not depend on the first snapshot of this run. So of two runs at the same time only one
publishes, even if they skipped different snapshots without rows, or one has read further.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

import lakeformat as lake
from spark_jobs.cdc.columns import MessageColumns
from spark_jobs.cdc.declared import Declared
from spark_jobs.cdc.evolve import changes_for
from spark_jobs.frames.publish import publish
from spark_jobs.ingestion.copied_table import (
    copy_of,
    forgets_deletes,
    require_no_deletes,
    require_no_kept_deletes,
    require_same_merge,
)
from spark_jobs.ingestion.copy_warnings import (
    warn_of_double_rows,
    warn_of_missing_rows,
    warn_of_overwrites,
)
from spark_jobs.ingestion.file_stream import rounds
from spark_jobs.runtime.job import Outcome, newest_snapshot

if TYPE_CHECKING:
    from lakeformat.tables.stream import StreamedChanges
    from spark_jobs.job_requests.ingest import IngestRequest
    from spark_jobs.runtime.spark_session import Sessions

__all__ = ["follow_changes"]

_log = logging.getLogger(__name__)
_Written: TypeAlias = "Callable[[lake.Table, Iterable[StreamedChanges]], list[lake.CommitMessage]]"
"""Writes the next changes of a stream into files, and returns the messages to commit."""
_KINDS = "rowkind"
_NEXT = "lake.source.next-snapshot"
_LAST = "lake.source.position"
"""The property for the position of the last source snapshot whose rows were copied."""
_TABLE = "lake.source.table"
"""The property for the identity of the source; commits by older versions of this job lack it."""
_RUN = "lake.source.run"


def follow_changes(
    catalog: lake.Catalog,
    existing: Callable[[], lake.Table | None],
    wanted: IngestRequest,
    spark: Sessions | None = None,
) -> Outcome:
    """Ingest the new changes once, and return the outcome.

    With ``poll`` the function ingests again after each interval, and never returns. ``existing``
    opens the target table, or returns None if the job must create it. With ``spark``, Spark's tasks
    read and write. Raises ``UnsupportedError`` unless both tables are Paimon tables.
    """
    done: Outcome | None = None
    for _ in rounds(wanted.poll):
        done = _ingest_changes(catalog, existing(), wanted, spark)
        _log.info("%s: %s", wanted.table, done.reason)
    assert done is not None  # there is at least one round
    return done


def _ingest_changes(
    catalog: lake.Catalog, table: lake.Table | None, wanted: IngestRequest, spark: Sessions | None
) -> Outcome:
    """Read the changes that the consumer has not read yet, commit them, and move the consumer."""
    assert wanted.source_table is not None
    assert wanted.consumer is not None
    if table is not None:
        _require_changes(table)
    source = catalog.table(wanted.source_table)
    _require_changes(source)
    read_table = source.identity  # before the changes are read: the source may be recreated then
    table = _fitted(catalog, copy_of(catalog, table, source, wanted), source, wanted.table)
    require_same_merge(table, source, wanted)
    snapshots = table.snapshots()
    if (own := _commit_of_run(snapshots, wanted)) is not None:
        done = _done_before(table, own)
        try:
            _finish_earlier(table, snapshots, source, wanted.consumer, read_table, own)
        except (lake.InvalidRequestError, lake.NotFoundError) as error:
            _log.warning(
                "%s; but consumer %r was not moved: %s", done.reason, wanted.consumer, error
            )
        return done
    identity = _finish_earlier(table, snapshots, source, wanted.consumer, read_table)
    before = newest_snapshot(table)
    stream = source.stream(consumer=wanted.consumer)
    begin = stream.starts_at()
    written: _Written = partial(_written_here, source)
    if spark is not None:
        from spark_jobs.ingestion.spark_rows import changes_written

        written = partial(changes_written, spark, source)
    copied: list[lake.Position] = []
    messages = written(table, _noting(stream, copied))
    with ExitStack() as stack:  # keeps the record until the consumer has moved
        noted = _noted(stack, table, identity, messages)
        properties = _properties(stream.next_snapshot, copied, read_table, wanted)
        report = _commit(table, identity, noted, messages, properties)
        if report.replayed:  # another run was first, and may not have moved the consumer yet
            _move(table, source, wanted.consumer, report)
        elif messages or _may_have_copied(snapshots, identity.user):
            stream.acknowledge()  # before the first commit each run looks for all rows
    if begin.full is None:
        warn_of_overwrites(table, source, begin.position)
    following = _position(source, wanted.consumer)
    if report.snapshot_id is None:
        why = f"consumer {wanted.consumer!r} reads snapshot {following} next"
        if stream.next_snapshot is None:
            why = f"{wanted.source_table} has no snapshots"
        elif not following:
            why = f"the next run reads all rows, as consumer {wanted.consumer!r} has no position"
        reason = f"no new changes in {wanted.source_table}, so nothing was written: {why}"
        report = replace(report, reason=reason)
    return Outcome.of_commit(table, report, before, more={"next_snapshot": following})


def _require_changes(table: lake.Table) -> None:
    if advice := table.instead.get("ingest_changes"):
        raise lake.UnsupportedError(
            f"{table.location} is {table.kind}, for which the job does not take 'source_table': "
            f"{advice}"
        )


def _commit(
    table: lake.Table,
    commit: lake.CommitId,
    noted: lake.CommitId | None,
    messages: list[lake.CommitMessage],
    properties: dict[str, str],
) -> lake.CommitReport:
    """Commit the files with the identity ``noted``. The snapshot stores ``properties``.

    If ``noted`` is None, another run has already committed changes from the same position. Then
    return the report of that commit, which may end at another position. Raise
    ``CommitConflictError`` if it is not found, for example because its snapshot has expired.
    """
    if noted is None:
        table.abort(messages)
        if (done := table.find_commit(commit)) is not None:
            return done
        raise _commit_is_missing(table)
    if not messages:  # an empty commit would use up the identity
        return table.find_commit(commit) or lake.CommitReport(
            table=table.location, snapshot_id=None, reason="no changes"
        )
    try:
        return publish(table, messages, commit=noted, properties=properties)
    except lake.CommitOutcomeUnknownError:
        raise
    except lake.LakeError:
        if (done := table.find_commit(commit)) is not None:
            return done  # the commit of another run, which may have read more or less
        raise


def _noted(
    stack: ExitStack, table: lake.Table, commit: lake.CommitId, messages: list[lake.CommitMessage]
) -> lake.CommitId | None:
    """Begin a batch of the stream, and return the identity to commit with; None if another run has
    committed changes from the same position. The batch ends when ``stack`` is closed.

    Raise ``CommitConflictError`` if the table has a record of a later commit, but lacks ``commit``.
    """
    if not messages:
        return commit
    try:
        return stack.enter_context(table.stream_batch(commit))
    except lake.InvalidRequestError as error:  # a later commit is recorded
        table.abort(messages)
        raise _commit_is_missing(table) from error


def _commit_is_missing(table: lake.Table) -> lake.CommitConflictError:
    return lake.CommitConflictError(
        f"{table.location} has a record that the changes of this run were already committed, but "
        "their commit is not found. This run wrote nothing. Run the job again, because another run "
        "may have just committed the changes. If the job fails again, the table was rolled back or "
        "restored: copy into a new table, with another consumer"
    )


def _noting(
    stream: Iterable[StreamedChanges], copied: list[lake.Position]
) -> Iterator[StreamedChanges]:
    """Yield the changes of ``stream``, and add the position of each to ``copied``."""
    for changes in stream:
        copied.append(changes.position)
        yield changes


def _properties(
    following: int | None, copied: Sequence[lake.Position], read_table: str, wanted: IngestRequest
) -> dict[str, str]:
    """Return the properties of a commit: the source, the position at which the reading ended, the
    last position with rows, and the run.
    """
    found = {_TABLE: read_table}
    if following is not None:
        found[_NEXT] = str(following)
    if copied:
        found[_LAST] = str(copied[-1])
    if (run := _run_of(wanted)) is not None:
        found[_RUN] = run
    return found


def _fitted(catalog: lake.Catalog, table: lake.Table, source: lake.Table, name: str) -> lake.Table:
    """Add the missing columns of the source to the table, widen types until they hold the source's
    values, and return the table. Raise ``InvalidRequestError`` if a column cannot be made to fit.
    """
    columns = MessageColumns()
    columns.declare({each.name: Declared(each.type) for each in source.schema.fields})
    changes = changes_for(table, columns, texts_hold_all=False)
    return catalog.alter_table(name, *changes) if changes else table


def _written_here(
    source: lake.Table, table: lake.Table, stream: Iterable[StreamedChanges]
) -> list[lake.CommitMessage]:
    rows = _rows_without_deletes if forgets_deletes(source) else _rows
    with table.new_writer() as writer:
        writer.write(rows(source, table, stream), _KINDS)
        return writer.prepare()


def _rows(
    source: lake.Table, table: lake.Table, stream: Iterable[StreamedChanges]
) -> Iterator[pa.RecordBatch]:
    for changes in stream:
        yield from changes.to_batches()


def _rows_without_deletes(
    source: lake.Table, table: lake.Table, stream: Iterable[StreamedChanges]
) -> Iterator[pa.RecordBatch]:
    for changes in stream:
        if changes.is_full:
            require_no_kept_deletes(table, source.state_scan(changes.position))
        yield from require_no_deletes(table, changes.to_batches(), _KINDS)


def _finish_earlier(
    table: lake.Table,
    snapshots: Sequence[lake.Snapshot],
    source: lake.Table,
    consumer: str,
    read_table: str,
    own: lake.Snapshot | None = None,
) -> lake.CommitId:
    """Move the consumer past the commits of earlier runs, and return the identity of the next
    commit.

    A run that crashes after its commit has not moved the consumer. ``own`` is the commit of an
    earlier attempt of this run; it is found even if the source was renamed meanwhile.

    Raise ``NotFoundError`` if the source no longer has the snapshots that earlier runs have read.
    """
    user = _user(source, consumer)
    copies = [each for each in reversed(snapshots) if _NEXT in (each.properties or {})]
    newest = next((each for each in copies if each.commit_user == user or each == own), None)
    if newest is not None:
        _require_same_history(table, source, newest, read_table)
    ended = None if newest is None else _end_of(newest)
    try:
        position = _position(source, consumer)
    except lake.CorruptTableError:
        if ended is None:
            raise
        position = 0  # The consumer was truncated by a crash, but the commit has a later position.
    same = (each for each in copies if (each.properties or {}).get(_TABLE) == read_table)
    if (renamed := next(same, None)) is not None:
        # A consumer that has also copied earlier belongs to another job.
        before = [] if newest is None else copies[copies.index(newest) + 1 :]
        is_new = renamed.commit_user not in {each.commit_user for each in before}
        if is_new and (end := _end_of(renamed)) > max(position, ended or 0):
            warn_of_double_rows(table, source, consumer, renamed, end)
    elif ended is None and position and not _may_have_copied(snapshots, user):
        warn_of_missing_rows(table, source, consumer, position)
    if ended is None:
        return lake.CommitId(user, position)
    if ended > position:
        source.consumers.set(consumer, next_snapshot=ended)
    return lake.CommitId(user, ended)


def _may_have_copied(snapshots: Sequence[lake.Snapshot], user: str) -> bool:
    """Return True if the table has a commit by ``user``, or may have had one that has since
    expired.
    """
    has_expired = bool(snapshots) and snapshots[0].id > 1
    return has_expired or any(each.commit_user == user for each in snapshots)


def _require_same_history(
    table: lake.Table, source: lake.Table, commit: lake.Snapshot, read_table: str
) -> None:
    """Raise ``NotFoundError`` if ``commit`` has copied a table whose identity is not
    ``read_table``, or if the last source snapshot that it has copied was replaced or removed.

    No error is raised if that snapshot has only expired.
    """
    properties = commit.properties or {}
    if properties.get(_TABLE, read_table) != read_table:
        raise lake.NotFoundError(
            f"{source.location} was recreated: earlier runs have copied another table with this "
            f"name into {table.location}. So the copy may have rows that the source does not "
            "have. Nothing was written; copy into a new table, with another consumer"
        )
    last = properties.get(_LAST)
    if last is None:  # a commit of an earlier version
        return
    read = source.position(last)
    if source.since(read, read).rewound:
        raise lake.NotFoundError(
            f"{source.location} was rolled back or recreated: snapshot {read.number}, which "
            f"earlier runs have copied into {table.location}, was removed. So the copy may have "
            "rows that the source no longer has. Nothing was written; copy into a new table, with "
            "another consumer"
        )


def _move(table: lake.Table, source: lake.Table, consumer: str, report: lake.CommitReport) -> None:
    [snapshot] = [each for each in table.snapshots() if each.id == report.snapshot_id]
    source.consumers.set(consumer, next_snapshot=_end_of(snapshot))


def _end_of(snapshot: lake.Snapshot) -> int:
    """Return the number of the source snapshot to read next, as the commit of ``snapshot`` has
    stored it.
    """
    return int((snapshot.properties or {})[_NEXT])


def _position(source: lake.Table, consumer: str) -> int:
    return next((each.next_snapshot for each in source.consumers.list() if each.id == consumer), 0)


def _user(source: lake.Table, consumer: str) -> str:
    identity = json.dumps([source.location, consumer])
    return f"changes-{hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()}"


def _run_of(wanted: IngestRequest) -> str | None:
    if wanted.commit_user is None or wanted.poll is not None:  # a stream has many commits
        return None
    return json.dumps([wanted.commit_user, wanted.commit_identifier])


def _commit_of_run(
    snapshots: Sequence[lake.Snapshot], wanted: IngestRequest
) -> lake.Snapshot | None:
    """Return the commit of an earlier attempt of the same run; None if there is none, or if the
    request has no commit identity or is a stream.
    """
    run = _run_of(wanted)
    if run is None:
        return None
    return next(
        (each for each in reversed(snapshots) if (each.properties or {}).get(_RUN) == run), None
    )


def _done_before(table: lake.Table, commit: lake.Snapshot) -> Outcome:
    """Return the outcome of a run whose earlier attempt has published ``commit``."""
    reason = f"this run has already committed snapshot {commit.id}; nothing was done"
    return Outcome(
        reason=reason,
        report={"table": table.location, "snapshot_id": commit.id, "reason": reason},
        snapshot_ids=[commit.id],
        replayed=True,
    )
