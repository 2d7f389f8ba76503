# SPDX-License-Identifier: Apache-2.0
"""The checkpoint of a stream of files: a directory that records which files were ingested.

Each batch has a file with the names and states of its source files (``0.json``, ``1.json``, …),
which is written before the batch starts. After its commit it gets a mark (``0.done``). An
interrupted batch that is resumed gets another mark (``0.again``). The recorded states of its source
files are then ignored, because the files may have changed before they were ingested. The mark
``0.done`` of such a batch has the states in which the files were ingested.

The commit identity of a batch is the name of the checkpoint and the number of the batch, and the
table records the newest batch (``Table.stream_batch``). So a batch that was committed but not
marked is not published twice.

The file ``table.json`` has the identity of the table that gets the batches, so that a table
that was dropped and created again is noticed. Checkpoints of earlier releases lack it until their
next batch.

After each ``BATCHES_APART`` batches, one file (such as ``upto-99.json``) lists all source files
ingested so far.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from lakeformat.environment import SYSTEM
from spark_jobs.ingestion.source_files import FileState
from spark_jobs.runtime.job_files import open_place

if TYPE_CHECKING:
    from lakeformat.storage import Storage
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["BATCHES_APART", "Batch", "Checkpoint"]

BATCHES_APART = 100
"""The number of batches after which their records are merged into one file."""
_UPTO, _TABLE = "upto-", "table.json"
_RECORD = re.compile(r"(stream|table|(upto-)?\d+)\.json|\d+\.(again|done)")


@dataclass(frozen=True, slots=True)
class Batch:
    """Source files that are ingested in one commit."""

    number: int
    files: tuple[str, ...]
    states: Mapping[str, FileState] = field(default_factory=dict)
    """The state in which each file was found, by path."""
    recorded: Mapping[str, FileState | None] = field(default_factory=dict)
    """The states that the first process of a resumed batch has recorded; empty for a new batch."""
    resumed_before: bool = False
    """True if another process has resumed the batch, perhaps with other states of the files."""
    began_millis: int | None = None
    """The start of the batch in epoch milliseconds, which only checkpoints of earlier releases
    have; else None.
    """

    def ingested(self, *, replayed: bool) -> dict[str, FileState | None]:
        """Return the states in which the files were ingested; None if a state is unknown.

        ``replayed`` is True if an earlier process has published the batch.
        """
        if not replayed or not self.recorded:
            return {path: self.states.get(path) for path in self.files}
        if not self.resumed_before:
            return dict(self.recorded)
        same = ((path, self.states.get(path)) for path in self.files)
        return {path: now if now == self.recorded[path] else None for path, now in same}


@dataclass(slots=True)
class Checkpoint:
    """The files that a stream has ingested, and the last batch if it is not marked as committed."""

    storage: Storage
    path: str
    name: str
    """The unique name of this checkpoint, which is part of its commit identities."""
    taken: dict[str, FileState | None] = field(default_factory=dict)
    """The state in which each file was ingested, by path; None if the state is unknown."""
    number: int = -1
    """The number of the last batch; -1 before the first."""
    begun: Batch | None = None
    """The last batch if it is not marked as committed; else None."""
    identity: str | None = None
    """The identity of the table that gets the batches; None if it is not recorded yet."""

    @classmethod
    def opened(cls, place: str, wanted: IngestRequest) -> Checkpoint:
        """Open the checkpoint in the directory or URI ``place``; create it if it does not exist.

        Raises ``InvalidRequestError`` if the checkpoint belongs to another table or source.
        """
        storage, path = open_place(place, wanted.catalog_options)
        storage.make_directory(path)
        about = {"table": wanted.table, "warehouse": wanted.warehouse, "source": wanted.source}
        first = json.dumps({"name": SYSTEM.new_id(), **about}).encode()
        storage.create(f"{path}/stream.json", first)
        kept = json.loads(storage.read(f"{path}/stream.json"))
        if (kept["table"], kept["source"]) != (wanted.table, wanted.source):
            raise lake.InvalidRequestError(
                f"checkpoint {place!r} belongs to source {kept['source']!r} and table "
                f"{kept['table']!r}: choose another checkpoint, one for each stream"
            )
        found = cls(storage, path, kept["name"])
        found._read()
        return found

    def is_own(self, path: str, place: str) -> bool:
        """Return True if the source file ``path`` is a record of this checkpoint.

        ``place`` is the directory or URI with which the checkpoint was opened. Symbolic links in
        local paths are resolved.
        """
        folder, _, name = path.rpartition("/")
        if _RECORD.fullmatch(name) is None:
            return False
        if folder in (self.path, place.rstrip("/")):
            return True
        is_local = self.storage.scheme == "file"
        return is_local and os.path.realpath(folder) == os.path.realpath(self.path)

    def next(self, states: Mapping[str, FileState]) -> Batch:
        """Record the files of the next batch, and return the batch. Raise ``CommitConflictError``
        if another process has recorded a batch with this number.
        """
        batch = Batch(self.number + 1, tuple(states), states)
        content = {"files": batch.files, "states": batch.states}
        is_first = self._create(f"{batch.number}.json", content)
        # The file may be missing again because another process has already merged this batch.
        if not is_first or _upto(self._names()) >= batch.number:
            raise lake.CommitConflictError(
                f"another process uses the checkpoint {self.storage.uri(self.path)}: batch "
                f"{batch.number} exists already. Run only one process for each stream"
            )
        self.number, self.begun = batch.number, batch
        self.taken.update(states)
        return batch

    def resume(self, states: Mapping[str, FileState]) -> Batch:
        """Mark the last batch as resumed, and return it; only for a batch that is not marked as
        committed.

        ``states`` has the present states of the files of the batch.
        """
        assert self.begun is not None
        is_first = self.storage.create(f"{self.path}/{self.begun.number}.again", b"")
        self.taken.update(dict.fromkeys(self.begun.files))
        return replace(self.begun, states=states, resumed_before=not is_first)

    def commit(self, batch: Batch) -> lake.CommitId:
        """Return the commit identity of a batch."""
        user = f"stream-{self.name}"
        return lake.CommitId(user, batch.number, first_try_millis=batch.began_millis)

    def require_table(self, name: str, identity: str | None) -> None:
        """Raise ``InvalidRequestError`` if the table is not the one that got the earlier batches.

        ``identity`` is the identity of the table ``name``; None if the table does not exist.
        """
        if not self.identity or self.identity == identity:
            return
        found = "does not exist any more"
        if identity is not None:
            found = "was dropped and created again, or is in another warehouse now"
        raise lake.InvalidRequestError(
            f"table {name!r} {found}, so it lacks the rows of the files that the checkpoint "
            f"{self.storage.uri(self.path)} records as ingested. Nothing was written. To ingest "
            "all files, choose another checkpoint. To ingest only files that this checkpoint does "
            f"not record, delete the file {_TABLE!r} in its directory"
        )

    def mark(self, batch: Batch, identity: str | None, replayed: bool) -> None:
        """Mark a batch as committed, so that a later process does not look for its commit again.

        ``identity`` is the identity of the table; None if the table was dropped meanwhile.
        ``replayed`` is True if an earlier process has published the batch.
        """
        if not self.identity and identity:
            self._create(_TABLE, {"identity": identity})
            self.identity = identity
        found = batch.ingested(replayed=replayed)
        self.taken.update(found)
        content = json.dumps(_content_of(found)).encode() if batch.recorded else b""
        self.storage.create(f"{self.path}/{batch.number}.done", content)
        self.begun = None
        if (batch.number + 1) % BATCHES_APART == 0:
            self._create(f"{_UPTO}{batch.number}.json", self._all_files())
            self._clean()

    def _read(self) -> None:
        names = self._names()
        if _TABLE in names:
            self.identity = self._content(_TABLE)["identity"]
        if (upto := _upto(names)) >= 0:
            content = self._content(f"{_UPTO}{upto}.json")
            self.taken.update(_states(content))
            self.number = upto
        while f"{self.number + 1}.json" in names:
            self.number += 1
            content = self._content(f"{self.number}.json")
            states, is_done = _states(content), f"{self.number}.done" in names
            began = content.get("began_millis")
            batch = Batch(self.number, tuple(states), recorded=states, began_millis=began)
            self.begun = None if is_done else batch
            if f"{self.number}.again" in names:
                states = dict.fromkeys(states)
                states |= self._resumed(f"{self.number}.done") if is_done else {}
            self.taken.update(states)

    def _resumed(self, name: str) -> dict[str, FileState | None]:
        """Return the states in the mark of a resumed batch. A mark of an earlier release has
        none.
        """
        content = self._content(name)
        return _states(content) if content else {}

    def _clean(self) -> None:
        """Delete the records of all batches that the newest ``upto`` file includes, and older
        ``upto`` files. Files that an earlier call left because of a crash are deleted, too.
        """
        names = self._names()
        upto = _upto(names)
        for name in names:
            stem, _, ending = name.rpartition(".")
            is_batch = (
                stem.isdecimal() and ending in ("again", "done", "json") and int(stem) <= upto
            )
            if is_batch or 0 <= _upto({name}) < upto:
                self.storage.delete(f"{self.path}/{name}")

    def _all_files(self) -> dict[str, Any]:
        return _content_of(dict(sorted(self.taken.items())))

    def _names(self) -> set[str]:
        return {info.name for info in self.storage.list(self.path)}

    def _content(self, name: str) -> dict[str, Any]:
        try:
            content = self.storage.read(f"{self.path}/{name}")
            found: dict[str, Any] = json.loads(content) if content else {}
        except lake.NotFoundError:
            raise lake.CommitConflictError(
                f"another process uses the checkpoint {self.storage.uri(self.path)}: {name} was "
                "deleted while it was read. Run only one process for each stream"
            ) from None
        return found

    def _create(self, name: str, content: dict[str, Any]) -> bool:
        return self.storage.create(f"{self.path}/{name}", json.dumps(content).encode())


def _content_of(states: Mapping[str, FileState | None]) -> dict[str, Any]:
    known = {path: state for path, state in states.items() if state is not None}
    return {"files": [*states], "states": known}


def _states(content: Mapping[str, Any]) -> dict[str, FileState | None]:
    """Return the state of each file in a record, by path. The state is None in the records of
    earlier releases, which store only paths.
    """
    states: Mapping[str, tuple[int, int | str]] = content.get("states", {})
    unknown: dict[str, FileState | None] = dict.fromkeys(content["files"])
    return unknown | {path: (size, mark) for path, (size, mark) in states.items()}


def _upto(names: set[str]) -> int:
    """Return the number of the last batch in the newest ``upto`` file among ``names``; -1 if there
    is none.
    """
    stems = [n.removeprefix(_UPTO).removesuffix(".json") for n in names if n.startswith(_UPTO)]
    return max((int(stem) for stem in stems if stem.isdecimal()), default=-1)
