"""Files that come one after another: each is taken once, whatever crashes when.

What has been taken is in a ``Checkpoint``; here are the batches, and the loop over them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import lakeformat as lake
from lakeformat.paimon.options.kinds import ASKED_DURATION
from spark_jobs.ingestion.file_checkpoint import Batch, Checkpoint
from spark_jobs.ingestion.source_files import find_paths
from spark_jobs.runtime.job import Outcome
from spark_jobs.runtime.progress import tell_progress

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["ingest_stream", "rounds"]

_Ingest = Callable[["tuple[str, ...]", lake.CommitId], Outcome]
"""Brings some files into the table under an identity."""


def ingest_stream(wanted: IngestRequest, ingest: _Ingest) -> Outcome:
    """Take what has not been taken yet, batch after batch; with ``poll`` go on looking for more."""
    assert wanted.checkpoint is not None
    checkpoint = Checkpoint.opened(wanted.checkpoint, wanted)
    done: list[Outcome] = []
    files = 0
    for batch in _batches(checkpoint, wanted):
        try:
            done.append(ingest(batch.files, checkpoint.commit(batch)))
        except FileNotFoundError as gone:
            raise lake.NotFoundError(
                f"batch {batch.number} of checkpoint {wanted.checkpoint!r} was begun with "
                f"{gone.filename}, which is not there any more: put it back, or a file without "
                "rows in its place, and run the job again"
            ) from None
        checkpoint.mark(batch)
        files += len(batch.files)
        tell_progress(files, files, "files", batch=batch.number)
    snapshots = [number for each in done for number in each.snapshot_ids]
    last = done[-1].report if done else {}
    return Outcome(
        reason=f"{files} files came in, in {len(done)} batches" if done else "no file is new",
        report={**last, "files_taken": files, "batches": len(done)},
        skipped=not done,
        snapshot_ids=snapshots,
    )


def rounds(poll: str | None) -> Iterator[None]:
    """Once, or again and again until somebody ends the process."""
    yield
    if poll is None:
        return
    seconds = ASKED_DURATION.parse(poll) / 1000
    while True:
        time.sleep(seconds)
        yield


def _batches(checkpoint: Checkpoint, wanted: IngestRequest) -> Iterator[Batch]:
    """First the one that may not be committed, then what is new."""
    if checkpoint.begun is not None:
        yield checkpoint.begun
    for _ in rounds(wanted.poll):
        while new := _new_files(wanted, checkpoint.taken):
            yield checkpoint.next(new[: wanted.files_per_batch])


def _new_files(wanted: IngestRequest, taken: set[str]) -> list[str]:
    assert wanted.source is not None
    try:
        found = find_paths(wanted.source, wanted.catalog_options)
    except lake.NotFoundError:
        return []  # none has come yet
    return [path for path in found if path not in taken]
