# SPDX-License-Identifier: Apache-2.0
"""Ingests files that arrive over time, each exactly once, even if the process crashes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import lakeformat as lake
from lakeformat.types.amounts import parse_asked_duration
from lakeformat.types.count_text import counted
from spark_jobs.ingestion.file_checkpoint import Batch, Checkpoint
from spark_jobs.ingestion.source_files import FileState, change_of, find_states
from spark_jobs.runtime.job import Outcome
from spark_jobs.runtime.progress import report_progress

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["ingest_stream", "rounds"]

_Ingest = Callable[["tuple[str, ...]", lake.CommitId], Outcome]
"""Ingests files under a commit identity."""
_Identity = Callable[[], "str | None"]
"""Returns the identity of the table; None if it does not exist."""


def ingest_stream(wanted: IngestRequest, ingest: _Ingest, identity: _Identity) -> Outcome:
    """Ingest all new files, batch after batch, and return one outcome for all batches.

    With ``poll`` the function looks for new files again and again, and never returns. Raises
    ``NotFoundError`` if a file of an interrupted batch is missing, and ``InvalidRequestError`` if a
    file has changed since it was ingested, or if the table is not the one of the earlier batches.
    Raises ``CommitConflictError`` if another process uses the checkpoint.
    """
    assert wanted.checkpoint is not None
    checkpoint = Checkpoint.opened(wanted.checkpoint, wanted)
    done: list[Outcome] = []
    files = 0
    for batch in _batches(checkpoint, wanted, identity):
        try:
            done.append(ingest(batch.files, checkpoint.commit(batch)))
        except FileNotFoundError as gone:
            raise lake.NotFoundError(
                f"batch {batch.number} of checkpoint {wanted.checkpoint!r} includes "
                f"{gone.filename}, which is missing: restore it, or put a file without rows in its "
                "place, and run the job again"
            ) from None
        checkpoint.mark(batch, None if checkpoint.identity else identity(), done[-1].replayed)
        files += len(batch.files)
        report_progress(files, files, "files", batch=batch.number)
    snapshots = [number for each in done for number in each.snapshot_ids]
    last = done[-1].report if done else {}
    return Outcome(
        reason=_sentence(files, len(done)),
        report={**last, "files_taken": files, "batches": len(done)},
        skipped=not done,
        snapshot_ids=snapshots,
        newest_before=done[0].newest_before if done else None,
        numbered=all(each.numbered for each in done),
    )


def rounds(poll: str | None) -> Iterator[None]:
    """Yield once; with ``poll``, such as ``"10 s"``, yield again after each interval, without
    end.
    """
    yield
    if poll is None:
        return
    seconds = parse_asked_duration(poll) / 1000
    while True:
        time.sleep(seconds)
        yield


def _sentence(files: int, batches: int) -> str:
    if not batches:
        return "no new file"
    return f"{counted(files, 'file')} ingested in {counted(batches, 'batch', 'batches')}"


def _batches(checkpoint: Checkpoint, wanted: IngestRequest, identity: _Identity) -> Iterator[Batch]:
    """Yield the batch that an earlier process began and may not have committed, if there is one.
    Then yield batches of new files.
    """
    for _ in rounds(wanted.poll):
        checkpoint.require_table(wanted.table, identity())
        if checkpoint.begun is not None:
            yield checkpoint.resume(_states_of(wanted, checkpoint))
        while new := _new_files(wanted, checkpoint):
            yield checkpoint.next(dict(islice(new.items(), wanted.files_per_batch)))


def _new_files(wanted: IngestRequest, checkpoint: Checkpoint) -> dict[str, FileState]:
    found, taken = _states_of(wanted, checkpoint), checkpoint.taken
    for path, state in found.items():
        before = taken.get(path)
        if before is not None and before != state:
            raise _changed(path, before, state, wanted)
    return {path: state for path, state in found.items() if path not in taken}


def _states_of(wanted: IngestRequest, checkpoint: Checkpoint) -> dict[str, FileState]:
    """Return the states of the source files, without the files of the checkpoint itself."""
    assert wanted.source is not None
    assert wanted.checkpoint is not None
    try:
        found = find_states(wanted.source, wanted.catalog_options)
    except lake.NotFoundError:
        return {}  # no file has arrived yet
    place = wanted.checkpoint
    return {path: state for path, state in found.items() if not checkpoint.is_own(path, place)}


def _changed(
    path: str, before: FileState, now: FileState, wanted: IngestRequest
) -> lake.InvalidRequestError:
    return lake.InvalidRequestError(
        f"{path} has changed since it was ingested ({change_of(before, now)}). Checkpoint "
        f"{wanted.checkpoint!r} ingests each file once, so new rows of the file are not in the "
        f"table. Move the file to a path that does not match {wanted.source!r}. If it has new "
        "rows, put only these rows into a file with a new name"
    )
