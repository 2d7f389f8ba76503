# SPDX-License-Identifier: Apache-2.0
"""Reads many metadata files of one table.

A metadata file lists all snapshots that existed when it was written. So consecutive files have
almost the same snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.iceberg.metadata.metadata_file import decode_metadata
from lakeformat.iceberg.metadata.snapshot import Snapshot, snapshot_from_json
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.parallel import in_parallel

__all__ = ["EarlierMetadata"]

_AT_A_TIME = 8
"""The number of metadata files that are in memory at the same time; a file can be large."""


@dataclass(slots=True)
class EarlierMetadata:
    """Reads metadata files, without their snapshot logs.

    A snapshot that is equal in two consecutive files is parsed once.
    """

    _known: dict[int, tuple[Mapping[str, Any], Snapshot]] = field(default_factory=dict)
    """The snapshots of the last metadata file by their ids, as JSON and parsed."""

    def read(
        self, files: Sequence[tuple[Storage, str]]
    ) -> Iterator[TableMetadata | CorruptTableError | NotFoundError]:
        """Yield the metadata in each file, or the error if it is damaged or does not exist.

        Raise ``UnsupportedError`` for a newer format version or an encrypted table.
        """
        for start in range(0, len(files), _AT_A_TIME):
            window = files[start : start + _AT_A_TIME]
            for (storage, path), content in zip(window, in_parallel(_read, window), strict=True):
                if isinstance(content, NotFoundError):
                    yield content
                else:
                    yield self._decoded(content, storage.uri(path))

    def _decoded(self, content: bytes, uri: str) -> TableMetadata | CorruptTableError:
        found: dict[int, tuple[Mapping[str, Any], Snapshot]] = {}

        def parse(members: Mapping[str, Any]) -> Snapshot:
            before, snapshot = self._known.get(members["snapshot-id"], (None, None))
            if snapshot is None or before != members:
                snapshot = snapshot_from_json(members)
            found[snapshot.snapshot_id] = members, snapshot
            return snapshot

        def build(members: dict[str, Any]) -> TableMetadata:
            return metadata_from_json(members | {"snapshot-log": None}, parse)

        try:
            return decode_metadata(content, uri, build)
        except CorruptTableError as reason:
            return reason
        finally:
            self._known = found


def _read(file: tuple[Storage, str]) -> bytes | NotFoundError:
    storage, path = file
    try:
        return storage.read(path, LARGE_FILE)
    except NotFoundError as reason:
        return reason
