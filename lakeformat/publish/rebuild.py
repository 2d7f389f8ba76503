# SPDX-License-Identifier: Apache-2.0
"""Makes the metadata of a table from scratch: its newest snapshot, and the kept snapshots before
it.

The oldest snapshot adds all of its files. Each later snapshot applies the changes since the
snapshot before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from lakeformat.errors import CorruptTableError, NotFoundError, UnsupportedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import following
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.plan import naming_partition
from lakeformat.publish.history import KeptSnapshot
from lakeformat.publish.next_state import NextState

__all__ = ["Rebuild", "with_log_of"]

_log = logging.getLogger(__name__)
_MOST_RESTARTS = 3
"""After this many restarts because of unpublishable snapshots, only the newest snapshot is
published.
"""
_NOT_READABLE = (CorruptTableError, NotFoundError, UnsupportedError)


class Rebuild:
    """Writes the manifests of all snapshots; call ``discard`` to delete them if they are not
    published.
    """

    def __init__(
        self, first: LoadedMetadata, state: Callable[[LoadedMetadata, Snapshot], NextState]
    ) -> None:
        """Start from ``first``, metadata without snapshots.

        ``state`` returns the ``NextState`` that publishes a snapshot on top of given metadata.
        """
        self._first, self._state = first, state
        self._written: list[str] = []
        self._done = 0

    def metadata(self, history: Sequence[KeptSnapshot]) -> TableMetadata:
        """Return the metadata of all snapshots in ``history``, which are oldest first.

        If an older snapshot cannot be published, for example because it expires meanwhile, the
        history begins later, with a warning. If the newest one cannot be published, raise its
        error: ``CorruptTableError``, ``NotFoundError`` or ``UnsupportedError``.
        """
        rest = history
        for restarts in count(1):
            try:
                return self._all_of(rest)
            except _NOT_READABLE as reason:
                if len(rest) == 1:
                    raise
                rest = rest[max(self._done, 1) :]
                rest = rest[-1:] if restarts > _MOST_RESTARTS else rest
                self.discard()
                _log.warning(
                    "publishing the history of %s from snapshot %s on, because an earlier one "
                    "cannot be published: %s",
                    *(self._first.metadata.location, rest[0].snapshot.id, reason),
                )
        raise AssertionError

    def discard(self) -> None:
        """Delete all written files. Call this only if their metadata was not published."""
        delete_files(self._first.places, self._written)
        self._written.clear()

    def _all_of(self, history: Sequence[KeptSnapshot]) -> TableMetadata:
        made: LoadedMetadata | None = None
        before: Snapshot | None = None
        for self._done, each in enumerate(history):
            made = self._next(made, before, each)
            before = each.snapshot
        assert made is not None
        return replace(made.metadata, metadata_log=())

    def _next(
        self, made: LoadedMetadata | None, before: Snapshot | None, each: KeptSnapshot
    ) -> LoadedMetadata:
        snapshot, first = each.snapshot, self._first
        metadata = first.metadata if made is None else made.metadata
        if made is None:
            metadata = replace(metadata, last_sequence_number=snapshot.id - 1)
        base = replace(first, metadata=replace(metadata, current_schema_id=snapshot.schema_id))
        state = self._state(base, snapshot)
        try:
            with naming_partition(state.handle, snapshot):
                if before is None:
                    return replace(first, metadata=state.on_its_own())
                parent = metadata.current_snapshot
                assert parent is not None
                manifests = read_manifest_list(base.places, parent)
                after = state.after_base if each.is_next else state.after_expired
                return replace(first, metadata=after(manifests, before))
        finally:
            self._written += state.written


def with_log_of(before: LoadedMetadata, metadata: TableMetadata) -> TableMetadata:
    """Return ``metadata``, which was made from scratch, as the successor of ``before``.

    The result continues the metadata log of ``before``, and its time is not earlier than that of
    ``before``.
    """
    times = metadata.last_updated_ms, before.metadata.last_updated_ms
    started = replace(metadata, metadata_log=before.metadata.metadata_log)
    return following(started, before.metadata, before.metadata_file, max(times))
