"""Files that come one after another: each is taken once, whatever crashes when.

A checkpoint holds, batch by batch, which files it consists of (``0.json``, ``1.json``, …), written
before the batch is, and that it is committed (``0.done``). The identity of a batch's commit is the
checkpoint's own name and the number of the batch: one that was committed and is not marked is found
in the table, and nothing is published twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import lakeformat as lake
from lakeformat.options.kinds import ASKED_DURATION
from spark_jobs.job import Outcome
from spark_jobs.job_files import open_place
from spark_jobs.progress import tell_progress
from spark_jobs.source_files import find_paths

if TYPE_CHECKING:
    from lakeformat.storage import Storage
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["ingest_stream", "rounds"]

_Ingest = Callable[["tuple[str, ...]", lake.CommitId], Outcome]
"""Brings some files into the table under an identity."""


def ingest_stream(wanted: IngestRequest, ingest: _Ingest) -> Outcome:
    """Take what has not been taken yet, batch after batch; with ``poll`` go on looking for more."""
    assert wanted.checkpoint is not None
    checkpoint = _Checkpoint.opened(wanted.checkpoint, wanted)
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


@dataclass(frozen=True, slots=True)
class _Batch:
    number: int
    files: tuple[str, ...]
    began_millis: int


@dataclass(slots=True)
class _Checkpoint:
    """What survives the process."""

    storage: Storage
    path: str
    name: str
    """Of this checkpoint and no other."""
    taken: set[str] = field(default_factory=set)
    last: _Batch | None = None
    is_marked: bool = True
    """Whether the last batch is committed for certain."""

    @classmethod
    def opened(cls, place: str, wanted: IngestRequest) -> _Checkpoint:
        """The checkpoint of this table and source; made where there is none."""
        storage, path = open_place(place, wanted.catalog_options)
        storage.make_directory(path)
        about = {"table": wanted.table, "warehouse": wanted.warehouse, "source": wanted.source}
        first = json.dumps({"name": str(uuid.uuid4()), **about}).encode()
        storage.create(f"{path}/stream.json", first)
        kept = json.loads(storage.read(f"{path}/stream.json"))
        if (kept["table"], kept["source"]) != (wanted.table, wanted.source):
            raise lake.InvalidRequestError(
                f"checkpoint {place!r} is of source {kept['source']!r} and table "
                f"{kept['table']!r}: each stream has a checkpoint of its own"
            )
        found = cls(storage, path, kept["name"])
        found._read()
        return found

    def _read(self) -> None:
        names = {info.name for info in self.storage.list(self.path)}
        for number in range(sum(name.endswith(".json") for name in names) - 1):
            content = json.loads(self.storage.read(f"{self.path}/{number}.json"))
            self.last = _Batch(number, tuple(content["files"]), content["began_millis"])
            self.taken.update(self.last.files)
            self.is_marked = f"{number}.done" in names

    def next(self, files: list[str]) -> _Batch:
        """Write down what the next batch is; that it is, is certain from here on."""
        number = 0 if self.last is None else self.last.number + 1
        batch = _Batch(number, tuple(files), int(time.time() * 1000))
        content = {"files": batch.files, "began_millis": batch.began_millis}
        if not self.storage.create(f"{self.path}/{number}.json", json.dumps(content).encode()):
            raise lake.CommitConflictError(
                f"somebody else works on the checkpoint {self.storage.uri(self.path)}: it has a "
                f"batch {number} already. One stream has one process"
            )
        self.last, self.is_marked = batch, False
        self.taken.update(files)
        return batch

    def commit(self, batch: _Batch) -> lake.CommitId:
        """Who commits a batch; one of which the table has forgotten is refused."""
        user = f"stream-{self.name}"
        return lake.CommitId(user, batch.number, first_try_millis=batch.began_millis)

    def mark(self, batch: _Batch) -> None:
        """The table need not be asked for it any more."""
        self.storage.create(f"{self.path}/{batch.number}.done", b"")
        self.is_marked = True


def _batches(checkpoint: _Checkpoint, wanted: IngestRequest) -> Iterator[_Batch]:
    """First the one that may not be committed, then what is new."""
    if checkpoint.last is not None and not checkpoint.is_marked:
        yield checkpoint.last
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
