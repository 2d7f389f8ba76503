# SPDX-License-Identifier: Apache-2.0
"""The files of the consumers of one table, including files of earlier releases.

Two tables can share a directory, and earlier releases did not separate their consumers. So a file
of an earlier release is ignored if its position cannot belong to this table. New files are in a
directory with the UUID of the table. If a consumer has a new file, its old file is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.own_files import own_records
from lakeformat.tables.consumers.files import ConsumerFiles, consumers_in
from lakeformat.tables.json_file import NO_JSON
from lakeformat.tables.position import OF_NO_SNAPSHOT, Position

__all__ = ["OwnConsumerFiles", "own_consumers"]


@dataclass(frozen=True, slots=True)
class OwnConsumerFiles(ConsumerFiles):
    """The files of the consumers of one table, in its own directory and in ``old``."""

    old: ConsumerFiles | None
    """The files of earlier releases. None for a table without a UUID: its old and new files are in
    one directory.
    """
    may_name: Callable[[Collection[int]], bool]
    """Returns True if a consumer file with these snapshot ids can belong to this table."""

    def modified(self) -> Iterator[tuple[str, int]]:
        """Yield the id of each consumer, and the time of its last progress in epoch
        milliseconds.
        """
        if self.old is None:
            yield from ConsumerFiles.modified(self)
            return
        inside, name = self.storage.list(self.old.directory), self.directory.rpartition("/")[2]
        has_directory = any(each.is_directory and each.name == name for each in inside)
        found = dict(ConsumerFiles.modified(self)) if has_directory else {}
        for consumer_id, modified in consumers_in(inside):
            if consumer_id not in found and self._has_old(consumer_id):
                found[consumer_id] = modified
        yield from sorted(found.items())

    def find(self, consumer_id: str) -> tuple[str, bytes]:
        """Return the path and the content of a consumer's file; raise ``NotFoundError`` if it is
        missing.
        """
        try:
            return ConsumerFiles.find(self, consumer_id)
        except NotFoundError:
            if self.old is None:
                raise
            path, content = self.old.find(consumer_id)
            if not self.may_name(_snapshot_ids(content)):
                raise
            return path, content

    def delete(self, consumer_id: str) -> None:
        """Delete the files of a consumer; do nothing if they are missing.

        The file of an earlier release is deleted first. Otherwise its position would count again
        after a crash between the two deletions.
        """
        self.delete_old(consumer_id)
        ConsumerFiles.delete(self, consumer_id)

    def delete_new(self, consumer_id: str) -> None:
        """Delete only the file in the table's own directory."""
        ConsumerFiles.delete(self, consumer_id)

    def delete_old(self, consumer_id: str) -> None:
        """Delete the file of an earlier release; do nothing if it is missing or belongs to another
        table.
        """
        if self.old is not None and self._has_old(consumer_id):
            self.old.delete(consumer_id)

    def _has_old(self, consumer_id: str) -> bool:
        assert self.old is not None
        try:
            _, content = self.old.find(consumer_id)
        except NotFoundError:
            return False
        return self.may_name(_snapshot_ids(content))


def own_consumers(
    handle: TableHandle, *other_stores: TableHandle, loaded: LoadedMetadata | None = None
) -> OwnConsumerFiles:
    """Return the files of the consumers of a branch.

    ``other_stores`` are the other stores of a Mixed table; a position also names their snapshots.
    ``loaded`` is the metadata if it is already read.
    """
    records = own_records(handle, "consumer", *other_stores, loaded=loaded)
    storage = records.storage
    old = ConsumerFiles(storage, records.old_directory) if records.has_old_place else None
    return OwnConsumerFiles(storage, records.directory, old, records.may_name)


def _snapshot_ids(content: bytes) -> set[int]:
    """Return the ids of the snapshots at a stored position; empty if the position names none, or if
    the file is damaged.
    """
    try:
        identity = Position.parse(json.loads(content)["position"]).identity or ""
        return {int(each) for each in identity.split("-") if each not in ("", OF_NO_SNAPSHOT)}
    except (*NO_JSON, KeyError, TypeError, InvalidRequestError):
        return set()
