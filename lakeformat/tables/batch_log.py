# SPDX-License-Identifier: Apache-2.0
"""Records the newest batch of each stream, so that each batch is published exactly once.

A streaming job stores its checkpoint after the commit of a batch. If the job crashes in between, it
repeats the batch when it restarts. By then the snapshot of the first commit may have expired.

So before a batch is published, a consumer and a file are created. The consumer protects the newest
snapshot and all later ones from expiry. The file ``stream-<name>`` records the batch and the time
of the first attempt. After the commit the file records that the batch is published, and the
consumer is deleted.

If a user deleted the consumer, and the snapshot of the first commit may have expired, a repeated
commit raises ``CommitUndecidableError`` (see ``CommitId``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from lakeformat.environment import Environment
from lakeformat.errors import (
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.storage import Storage
from lakeformat.tables.commit_id import CommitId, require_commit_id
from lakeformat.tables.json_file import Member, decode_json_file, read_members, write_members

__all__ = ["StreamTable", "stream_batch"]

_PREFIX = "stream-"
_REMEDY = "delete the file: the library then looks for the batch only in the snapshots"
_MEMBERS = (
    Member("identifier", "identifier", int, required=True),
    Member("firstTryMillis", "first_try_millis", int),
    Member("firstTryHead", "first_try_head", str),
    Member("checkpoint", "checkpoint", str),
)


@dataclass(frozen=True, slots=True)
class _Note:
    """The content of ``stream-<name>``: the newest batch of a stream.

    The batch is published if ``first_try_millis`` is None. ``checkpoint`` is None if it is unknown.
    """

    identifier: int
    first_try_millis: int | None = None
    first_try_head: str | None = None
    checkpoint: str | None = None

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> _Note:
        return cls(**read_members(_MEMBERS, members))


@dataclass(frozen=True, slots=True)
class StreamTable:
    """The parts of a table that the log of batches needs."""

    uri: str
    storage: Storage
    directory: str
    """The directory of the files ``stream-<name>``."""
    environment: Environment
    find_commit: Callable[[CommitId], object | None]
    keep: Callable[[str], str | None]
    """Creates a consumer with this name, which keeps the newest snapshot and all later ones.
    Returns the identity of the newest snapshot; None if the table has no snapshots.
    """
    forget: Callable[[str], None]
    """Deletes the consumer with this name."""
    old_directory: Callable[[CommitId], str | None] = lambda _: None
    """Returns the directory in which earlier releases wrote the files ``stream-<name>``; None if
    those files are not needed to find out if the given commit is published. A file there may belong
    to another table.
    """
    forget_old: Callable[[str], None] = lambda _: None
    """Deletes the consumer with this name that an earlier release created."""
    adopted: Callable[[], StreamTable] | None = None
    """Only for Mixed tables: returns the base store, which may have files ``stream-<name>`` from a
    time when the table was an Iceberg table. They are used for streams without a file in
    ``directory``.
    """


@contextmanager
def stream_batch(
    table: StreamTable, commit: CommitId, checkpoint: str | None = None
) -> Iterator[CommitId | None]:
    """Publish one batch of a stream exactly once, in a with block that commits; see
    ``Table.stream_batch``.

    Yields the identity to commit with, or None if the batch is already published.
    """
    require_commit_id(commit)
    batch = _LoggedBatch(table, commit, quote(commit.user, safe=""), checkpoint)
    noted = batch.begun()
    if noted is None:
        yield None
        return
    try:
        yield noted
    except CommitOutcomeUnknownError:
        raise
    except Exception:  # code in the caller's with block may raise any error
        with suppress(LakeError):
            batch.forget_unless_published(noted)
        raise
    batch.done()


@dataclass(slots=True)
class _LoggedBatch:
    table: StreamTable
    commit: CommitId
    name: str
    checkpoint: str | None
    is_first_try: bool = False
    has_note: bool = True
    """False if the stream has no note in ``StreamTable.directory`` yet."""
    earlier: _Note | None = None
    """The note in ``StreamTable.directory`` that a first attempt has replaced."""

    def begun(self) -> CommitId | None:
        """Record that the batch begins, and return the identity to commit it with.

        Return None if the batch is already published. Raise ``InvalidRequestError`` if the batch is
        older than the newest batch and its commit is not found. Also raise it if another checkpoint
        has published a batch with this number.
        """
        note, commit = self._newest_note(), self.commit
        if note is not None and note.identifier > commit.identifier:
            self._require_checkpoint(note)
            if self.table.find_commit(commit) is None:
                raise self._out_of_order(note)
            return None
        if note is not None and note.identifier == commit.identifier:
            if note.first_try_millis is None:
                self._require_checkpoint(note)
                self.table.forget(self.name)  # an interrupted attempt may have left the consumers
                self.table.forget_old(self.name)
                return None
            commit = replace(
                commit,
                first_try_millis=note.first_try_millis,
                first_try_head=note.first_try_head,
            )
            if self.table.find_commit(commit) is not None:
                self._require_checkpoint(note)
                self.done()
                return None
            if self.has_note and note.checkpoint != self.checkpoint:
                self._write(replace(note, checkpoint=self.checkpoint))
            return commit
        # The file is missing, or a crash left it empty. If it is empty, the consumer exists.
        if note is None and self.table.find_commit(commit) is not None:
            self.done()
            return None
        self.earlier = note if self.has_note else None
        return self._begin()

    def done(self) -> None:
        self._write(_Note(self.commit.identifier, checkpoint=self.checkpoint))
        self._forget()

    def forget_unless_published(self, noted: CommitId) -> None:
        """Undo ``begun`` after a failed first attempt, if the batch is not published.

        The record of the previous batch is restored, and the consumer is deleted. ``noted`` is the
        identity that ``begun`` has returned. After a repeated attempt, nothing is undone: an
        earlier attempt may have published the batch.
        """
        if not self.is_first_try or self.table.find_commit(noted) is not None:
            return
        if self.earlier is None:
            self.table.storage.delete(self._path)
        else:
            self._write(self.earlier)
        self.table.forget(self.name)

    def _begin(self) -> CommitId:
        self.is_first_try = True
        now = self.table.environment.now_millis()
        # The consumer also keeps the newest snapshot: while that exists, older snapshots may
        # expire.
        identity = self.table.keep(self.name)
        if not self.has_note:
            self.table.forget_old(self.name)
        self._write(_Note(self.commit.identifier, now, identity, self.checkpoint))
        return replace(self.commit, first_try_millis=now, first_try_head=identity)

    def _forget(self) -> None:
        self.table.forget(self.name)
        if not self.has_note:
            self.table.forget_old(self.name)

    def _newest_note(self) -> _Note | None:
        note = self._read(self._path)
        self.has_note = note is not None
        if note is None and (old := self.table.old_directory(self.commit)) is not None:
            note = self._old_note(f"{old}/{_PREFIX}{self.name}")
        if note is None and self.table.adopted is not None:
            earlier = replace(self, table=self.table.adopted())._newest_note()
            # For a newer batch than the adopted note has, the whole history is searched.
            if earlier is not None and earlier.identifier >= self.commit.identifier:
                note = earlier
        return note

    @property
    def _path(self) -> str:
        return f"{self.table.directory}/{_PREFIX}{self.name}"

    def _read(self, path: str) -> _Note | None:
        storage = self.table.storage
        try:
            content = storage.read(path)
        except NotFoundError:
            return None
        if not content:  # a crash left the file empty
            return None
        return decode_json_file(content, storage.uri(path), _Note.from_json, _REMEDY)

    def _old_note(self, path: str) -> _Note | None:
        """Return the note that an earlier release wrote; None if the batch does not need it.

        If the note records this batch as published, or names a newer batch, the table must have the
        commit of this batch. Raise ``InvalidRequestError`` if that commit is not found, because the
        note may belong to another table.
        """
        note, commit = self._read(path), self.commit
        if note is None or note.identifier < commit.identifier:
            return None
        is_newer = note.identifier > commit.identifier
        if is_newer or note.first_try_millis is None:
            if self.table.find_commit(commit) is None:
                raise self._undecidable(note, self.table.storage.uri(path))
            return note if is_newer else None
        return note

    def _write(self, note: _Note) -> None:
        members = write_members(_MEMBERS, note)
        self.table.storage.overwrite(self._path, json.dumps(members).encode())

    def _require_checkpoint(self, note: _Note) -> None:
        """Raise ``InvalidRequestError`` if the note is of another checkpoint, whose batches have
        other rows under the same numbers.
        """
        if None in (note.checkpoint, self.checkpoint) or note.checkpoint == self.checkpoint:
            return
        raise InvalidRequestError(
            f"{self.commit} was not published in {self.table.uri}. The stream has already "
            f"begun commit {note.identifier} from another checkpoint, and commits of two "
            "checkpoints can have the same number but different rows. If you changed the "
            "checkpoint, set 'query' to a new name, or leave 'query' out"
        )

    def _undecidable(self, note: _Note, old: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"Cannot find out whether {self.commit} is already published in {self.table.uri}, so "
            f"nothing was published now. An earlier release of this library recorded in {old} that "
            f"the stream has reached commit {note.identifier}, but no snapshot of {self.commit} "
            "was found. Either that file belongs to another table that has or had the same "
            "directory, or the snapshot has expired, or a rollback has removed it. If the table "
            f"has the rows of the commit, move the file to {self.table.storage.uri(self._path)}; "
            "otherwise delete the file. Then run the stream again"
        )

    def _out_of_order(self, note: _Note) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self.commit} arrived after commit {note.identifier} of the same stream into "
            f"{self.table.uri}, so nothing was published: the stream's checkpoint may have been "
            "removed or restored to an older state. To restart the stream, use another name and a "
            "new checkpoint"
        )
