"""What a stream notes beside its table, so that a batch is published once, whatever expires.

Who reads a stream writes down that a batch is done after the commit. If it dies in between, it
commits the batch again when it is started, which may be after the snapshot of the first commit
has expired. So before a batch is published

1. a consumer keeps all snapshots from here on, in this engine and in others, and
2. ``stream/stream-<name>`` says that the batch has begun, and when: if the consumer was taken away,
   a commit that is not found is refused where it may have expired (see ``CommitId``).

Afterwards the same file says that it is published, and the consumer goes.
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
from lakeformat.paimon.commit.commit import find_commit
from lakeformat.paimon.commit.identity import CommitId, require_commit_id
from lakeformat.paimon.consumers import TableConsumers
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.consumer import delete_consumer
from lakeformat.paimon.metadata.json_file import Remedy, decode_json_file
from lakeformat.paimon.metadata.json_member import Member, read_members, write_members
from lakeformat.paimon.metadata.snapshot_directory import FIRST_SNAPSHOT_ID, latest_snapshot

__all__ = ["stream_batch"]

_MEMBERS = (
    Member("identifier", "identifier", int, required=True),
    Member("firstTryMillis", "first_try_millis", int),
    Member("firstTryHead", "first_try_head", str),
)


@dataclass(frozen=True, slots=True)
class _Note:
    """The newest batch of a stream; without the time of its first try it is published."""

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
    batch = _Batch(handle, commit, quote(commit.user, safe=""))
    noted = batch.begun()
    if noted is None:
        yield None
        return
    try:
        yield noted
    except CommitOutcomeUnknownError:
        raise
    except Exception:  # of the block, which may do anything
        with suppress(LakeError):
            batch.forget_unless_published(noted)
        raise
    batch.done()


@dataclass(slots=True)
class _Batch:
    handle: TableHandle
    commit: CommitId
    name: str
    is_first_try: bool = False

    def begun(self) -> CommitId | None:
        """Note that it begins; None if it is done."""
        note, commit = self._read(), self.commit
        if note is not None and note.identifier > commit.identifier:
            if find_commit(self.handle, commit) is None:
                raise self._comes_late(note)
            return None
        if note is not None and note.identifier == commit.identifier:
            if note.first_try_millis is None:
                self._forget_consumer()  # which is there if the last step was not taken
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
        # Before a stream noted anything; or what it noted was cut short, and the consumer is there.
        if note is None and find_commit(self.handle, commit) is not None:
            self.done()
            return None
        return self._begin()

    def done(self) -> None:
        self._write(_Note(self.commit.identifier))
        self._forget_consumer()

    def forget_unless_published(self, noted: CommitId) -> None:
        """After what failed, before or behind the commit; of an earlier try nobody knows that."""
        if not self.is_first_try or find_commit(self.handle, noted) is not None:
            return
        self.handle.storage.delete(self._path)
        self._forget_consumer()

    def _begin(self) -> CommitId:
        handle, self.is_first_try = self.handle, True
        head = latest_snapshot(handle.storage, handle.layout)
        now = handle.environment.now_millis()
        identity = None if head is None else head.identity
        # The head stays, too: as long as it is there, what has expired before it decides nothing.
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
        if not content:  # a crash has cut it short
            return None
        return decode_json_file(content, storage.uri(self._path), _Note.from_json, Remedy.STREAM)

    def _write(self, note: _Note) -> None:
        members = write_members(_MEMBERS, note)
        self.handle.storage.overwrite(self._path, json.dumps(members).encode())

    def _forget_consumer(self) -> None:
        delete_consumer(self.handle.storage, self.handle.layout, self.name)

    def _comes_late(self, note: _Note) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self.commit} comes after commit {note.identifier} of the same stream into "
            f"{self.handle.uri}, and nothing was published now: was its checkpoint removed, or "
            "put back to an older state? A stream that begins anew has another name, and a "
            "checkpoint of its own"
        )
