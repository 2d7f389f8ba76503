# SPDX-License-Identifier: Apache-2.0
"""The log of a stream's newest batch, so that each batch is published exactly once.

A streaming reader records a finished batch after the commit. If it dies in between, it repeats the
batch when it restarts, perhaps after the snapshot of the first commit has expired. So before a
batch is published

1. a consumer keeps all snapshots from here on, in every engine, and
2. ``stream/stream-<name>`` records that the batch began, and when. If the consumer was deleted, a
   commit that is not found is refused if it may have expired (see ``CommitId``).

Afterwards the file records that the batch is published, and the consumer is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.paimon.commit.earlier_result import find_commit
from lakeformat.paimon.consumers import TableConsumers
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.consumer import delete_consumer
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot_directory import FIRST_SNAPSHOT_ID, latest_snapshot
from lakeformat.tables.commit_id import CommitId, require_commit_id
from lakeformat.tables.json_file import Member, decode_json_file, read_members, write_members

__all__ = ["stream_batch"]

_MEMBERS = (
    Member("identifier", "identifier", int, required=True),
    Member("firstTryMillis", "first_try_millis", int),
    Member("firstTryHead", "first_try_head", str),
)


@dataclass(frozen=True, slots=True)
class _Note:
    """The newest batch of a stream; it is published if ``first_try_millis`` is None."""

    identifier: int
    first_try_millis: int | None = None
    first_try_head: str | None = None

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> _Note:
        return cls(**read_members(_MEMBERS, members))


@contextmanager
def stream_batch(handle: TableHandle, commit: CommitId) -> Iterator[CommitId | None]:
    """See ``Table.stream_batch``."""
    require_commit_id(commit)
    batch = _LoggedBatch(handle, commit, quote(commit.user, safe=""))
    noted = batch.begun()
    if noted is None:
        yield None
        return
    try:
        yield noted
    except CommitOutcomeUnknownError:
        raise
    except Exception:  # the caller's block may raise any error
        with suppress(LakeError):
            batch.forget_unless_published(noted)
        raise
    batch.done()


@dataclass(slots=True)
class _LoggedBatch:
    handle: TableHandle
    commit: CommitId
    name: str
    is_first_try: bool = False

    def begun(self) -> CommitId | None:
        """Record that the batch begins; return None if it is already published."""
        note, commit = self._read(), self.commit
        if note is not None and note.identifier > commit.identifier:
            if find_commit(self.handle, commit) is None:
                raise self._out_of_order(note)
            return None
        if note is not None and note.identifier == commit.identifier:
            if note.first_try_millis is None:
                self._forget_consumer()  # left behind if the last step was interrupted
                return None
            commit = replace(
                commit,
                first_try_millis=note.first_try_millis,
                first_try_head=note.first_try_head,
            )
            if find_commit(self.handle, commit) is not None:
                self.done()
                return None
            return commit
        # No record yet, or a truncated one; in that case the consumer exists.
        if note is None and find_commit(self.handle, commit) is not None:
            self.done()
            return None
        return self._begin()

    def done(self) -> None:
        self._write(_Note(self.commit.identifier))
        self._forget_consumer()

    def forget_unless_published(self, noted: CommitId) -> None:
        """Remove the record of a failed first attempt, unless it was published.

        The state of earlier attempts is unknown, so their record is kept.
        """
        if not self.is_first_try or find_commit(self.handle, noted) is not None:
            return
        self.handle.storage.delete(self._path)
        self._forget_consumer()

    def _begin(self) -> CommitId:
        handle, self.is_first_try = self.handle, True
        head = latest_snapshot(handle.storage, handle.layout)
        now = handle.environment.now_millis()
        identity = None if head is None else head.identity
        # Keep the newest snapshot, too: while it exists, expired older snapshots do not matter.
        kept = FIRST_SNAPSHOT_ID if head is None else head.id
        TableConsumers(handle).set(self.name, next_snapshot=kept)
        self._write(_Note(self.commit.identifier, now, identity))
        return replace(self.commit, first_try_millis=now, first_try_head=identity)

    @property
    def _path(self) -> str:
        return self.handle.layout.stream(self.name)

    def _read(self) -> _Note | None:
        storage = self.handle.storage
        try:
            content = storage.read(self._path)
        except NotFoundError:
            return None
        if not content:  # truncated by a crash
            return None
        return decode_json_file(content, storage.uri(self._path), _Note.from_json, Remedy.STREAM)

    def _write(self, note: _Note) -> None:
        members = write_members(_MEMBERS, note)
        self.handle.storage.overwrite(self._path, json.dumps(members).encode())

    def _forget_consumer(self) -> None:
        delete_consumer(self.handle.storage, self.handle.layout, self.name)

    def _out_of_order(self, note: _Note) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self.commit} arrived after commit {note.identifier} of the same stream into "
            f"{self.handle.uri}, so nothing was published: its checkpoint may have been removed "
            "or restored to an older state. To restart the stream, use another name and a new "
            "checkpoint"
        )
