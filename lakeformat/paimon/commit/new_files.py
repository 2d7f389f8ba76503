# SPDX-License-Identifier: Apache-2.0
"""Checks that files of messages from other processes were not committed before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError, SnapshotExpiredError
from lakeformat.paimon.commit.base_files import in_partitions
from lakeformat.paimon.commit.conflict_text import named
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.index_manifest import read_index_manifest
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.tag import read_tags

__all__ = ["NewFileCheck"]

_COMMITTED_ONCE = (
    "each message may be committed only once. To make a retry harmless, use the same CommitId in "
    "every attempt"
)


@dataclass(slots=True)
class NewFileCheck:
    """Searches for the files of the messages in all commits since the writers started.

    A file can be committed only after its writer started. If the newest snapshot at that time is
    unknown, or a later snapshot has expired, the search covers all existing snapshots, the live
    files and the tags, including index files.
    """

    handle: TableHandle
    messages: Sequence[CommitMessage]
    advice: str = _COMMITTED_ONCE
    """The end of the error's message: what to do if a file is in the table already."""
    _names: pa.Array = field(init=False)
    _checked: int | None = field(init=False)
    _head: Snapshot | None = None
    """The newest snapshot of the last search, to notice a rollback; None before any search."""

    def __post_init__(self) -> None:
        names = [file.file_name for message in self.messages for file in message.written_files()]
        self._names = pa.array(names, pa.string()).cast(pa.large_binary())
        branch = self.handle.layout.branch
        bases = [each.base_snapshot for each in self.messages if each.branch == branch]
        known = [base for base in bases if base is not None]
        self._checked = min(known) if known and len(known) == len(self.messages) else None

    def check(self, head: Snapshot | None) -> None:
        """Raise InvalidRequestError if the search finds a file that ``head`` or an earlier snapshot
        has committed.
        """
        if head is None or not len(self._names):
            return
        is_replaced = self._head is not None and self._head.identity != head.identity
        since, is_known = self._checked, True
        if since is None or since > head.id - is_replaced:
            since, is_known = 0, False
        kept: list[Snapshot] = []
        for found in newest_first(self.handle, head, since):
            kept += [found] if found is not None else []
            if (changed := self._changed_by(found)) is None:
                is_known = False
                break
            self._refuse_if_there(*changed)
        if not is_known:
            self._check_live(head)
            self._check_index_files(kept)
        self._checked, self._head = head.id, head

    def _changed_by(self, found: Snapshot | None) -> tuple[ManifestColumns, str] | None:
        """Return the entries of a snapshot's changes, and the text that names it in an error.

        Return None if the snapshot has expired.
        """
        if found is None:
            return None
        try:
            with explaining_expiry(self.handle, found):
                return delta_of(self.handle, found), named(found)
        except SnapshotExpiredError:
            return None

    def _check_live(self, head: Snapshot) -> None:
        rows = [message.partition for message in self.messages]
        touched = pa.array(rows, pa.large_binary()).unique()
        self._refuse_if_there(in_partitions(self.handle, touched).at(head), named(head))
        for tag in read_tags(self.handle.storage, self.handle.layout):
            live = in_partitions(self.handle, touched).at(tag.snapshot)
            self._refuse_if_there(live, f"tag {tag.name!r}")

    def _check_index_files(self, kept: Sequence[Snapshot]) -> None:
        """Raise InvalidRequestError if a snapshot or tag has an index file of the messages.

        An index file can show that a message was committed, even if a compaction has replaced the
        data files of the message.
        """
        names = {one.file_name for each in self.messages for one in each.written_index_files()}
        if not names:
            return
        storage, layout = self.handle.storage, self.handle.layout
        tagged = (tag.snapshot for tag in read_tags(storage, layout))
        newest = {each.index_manifest: each for each in (*tagged, *reversed(kept))}
        for manifest, snapshot in newest.items():
            if manifest is None:
                continue
            with suppress(SnapshotExpiredError), explaining_expiry(self.handle, snapshot):
                for entry in read_index_manifest(storage, layout, manifest):
                    if entry.file_name in names:
                        raise self._refusal(named(snapshot), entry.file_name)

    def _refusal(self, where: str, name: str | None) -> InvalidRequestError:
        return InvalidRequestError(
            f"{where} of {self.handle.uri} already has the file {name}: {self.advice}"
        )

    def _refuse_if_there(self, columns: ManifestColumns, where: str) -> None:
        there = pc.is_in(columns.file_name.to_arrow(), self._names)
        mask = there.to_numpy(zero_copy_only=False)
        if mask.any():
            [name] = columns.filter(mask).file_name.texts()[:1]
            raise self._refusal(where, name)
