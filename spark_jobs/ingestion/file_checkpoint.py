"""What a stream of files has taken: a directory that survives its process.

It holds, batch by batch, which files it consists of (``0.json``, ``1.json``, …), written before
the batch is, and that it is committed (``0.done``). The identity of a batch's commit is the
checkpoint's own name and the number of the batch, and the table notes how far that has come
(``Table.stream_batch``): what was committed and is not marked is not published twice.

From time to time one file (``upto-99.json``) says all that was taken, and takes the place of those
of the single batches: they go once it is there, and so does the one before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from lakeformat.environment import SYSTEM
from spark_jobs.runtime.job_files import open_place

if TYPE_CHECKING:
    from lakeformat.storage import Storage
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["BATCHES_APART", "Batch", "Checkpoint"]

BATCHES_APART = 100
"""After so many batches they become one file."""
_UPTO = "upto-"


@dataclass(frozen=True, slots=True)
class Batch:
    """Some files that are committed together."""

    number: int
    files: tuple[str, ...]
    began_millis: int | None = None
    """When it was begun, of one that was before the table noted anything."""


@dataclass(slots=True)
class Checkpoint:
    """What has been taken, and the batch that may not be committed yet."""

    storage: Storage
    path: str
    name: str
    """Of this checkpoint and no other."""
    taken: set[str] = field(default_factory=set)
    number: int = -1
    """Of the last batch."""
    begun: Batch | None = None
    """The last batch, unless it is committed for certain."""

    @classmethod
    def opened(cls, place: str, wanted: IngestRequest) -> Checkpoint:
        """The checkpoint of this table and source; made where there is none."""
        storage, path = open_place(place, wanted.catalog_options)
        storage.make_directory(path)
        about = {"table": wanted.table, "warehouse": wanted.warehouse, "source": wanted.source}
        first = json.dumps({"name": SYSTEM.new_id(), **about}).encode()
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

    def next(self, files: list[str]) -> Batch:
        """Write down what the next batch is; that it is, is certain from here on."""
        batch = Batch(self.number + 1, tuple(files))
        is_first = self._create(f"{batch.number}.json", {"files": batch.files})
        # Who is far behind finds the number free again: the batch is in the file of many by then.
        if not is_first or _upto(self._names()) >= batch.number:
            raise lake.CommitConflictError(
                f"somebody else works on the checkpoint {self.storage.uri(self.path)}: it has a "
                f"batch {batch.number} already. One stream has one process"
            )
        self.number, self.begun = batch.number, batch
        self.taken.update(files)
        return batch

    def commit(self, batch: Batch) -> lake.CommitId:
        """Who commits a batch."""
        user = f"stream-{self.name}"
        return lake.CommitId(user, batch.number, first_try_millis=batch.began_millis)

    def mark(self, batch: Batch) -> None:
        """The table need not be asked for it any more."""
        self.storage.create(f"{self.path}/{batch.number}.done", b"")
        self.begun = None
        if (batch.number + 1) % BATCHES_APART == 0:
            self._create(f"{_UPTO}{batch.number}.json", {"files": sorted(self.taken)})
            self._clean()

    def _read(self) -> None:
        names = self._names()
        if (upto := _upto(names)) >= 0:
            self.taken.update(self._content(f"{_UPTO}{upto}.json")["files"])
            self.number = upto
        while f"{self.number + 1}.json" in names:
            self.number += 1
            content = self._content(f"{self.number}.json")
            batch = Batch(self.number, tuple(content["files"]), content.get("began_millis"))
            self.taken.update(batch.files)
            self.begun = None if f"{self.number}.done" in names else batch

    def _clean(self) -> None:
        """Remove what the newest file of many says as well; what a crash has left, too."""
        names = self._names()
        upto = _upto(names)
        for name in names:
            stem, _, ending = name.rpartition(".")
            is_batch = stem.isdecimal() and ending in ("json", "done") and int(stem) <= upto
            if is_batch or 0 <= _upto({name}) < upto:
                self.storage.delete(f"{self.path}/{name}")

    def _names(self) -> set[str]:
        return {info.name for info in self.storage.list(self.path)}

    def _content(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.storage.read(f"{self.path}/{name}"))
        except lake.NotFoundError:
            raise lake.CommitConflictError(
                f"{name} of the checkpoint {self.storage.uri(self.path)} went while it was read: "
                "somebody else works on it. One stream has one process"
            ) from None
        return found

    def _create(self, name: str, content: dict[str, Any]) -> bool:
        return self.storage.create(f"{self.path}/{name}", json.dumps(content).encode())


def _upto(names: set[str]) -> int:
    """The batch up to which one file says all; -1 if there is none."""
    stems = [n.removeprefix(_UPTO).removesuffix(".json") for n in names if n.startswith(_UPTO)]
    return max((int(stem) for stem in stems if stem.isdecimal()), default=-1)
