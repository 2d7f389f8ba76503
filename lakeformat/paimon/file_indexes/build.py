# SPDX-License-Identifier: Apache-2.0
"""Builds the index of one existing data file; the data file is not changed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.errors import LakeError
from lakeformat.paimon.datafile.file_index_writer import INDEX_SUFFIX, FileIndexWriter
from lakeformat.paimon.file_indexes.plan import Indexed, IndexUnit, index_place
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.index.file_index import decode_file_index
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.storage import Storage

__all__ = ["BuiltIndex", "build_index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIndex:
    """The new manifest entry of a data file.

    It contains the index itself, or the name of an index file, or neither.
    """

    unit: IndexUnit
    file: DataFileMeta
    index_bytes: int
    written: tuple[Storage, str] | None = None
    """Storage and path of the index file; None without an index file."""

    def discard(self) -> None:
        """Delete the index file; call this only if no manifest names the file."""
        if self.written is not None:
            storage, path = self.written
            with suppress(LakeError):
                storage.delete(path)


def build_index(handle: TableHandle, unit: IndexUnit) -> BuiltIndex | None:
    """Build the indexes of a data file; return None if its manifest entry would not change.

    After any error the new index file is deleted.
    """
    old = unit.entry.file
    container = _encode(handle, unit) if unit.wanted else None
    if not unit.force and _covered(container) == unit.there:
        return None
    kept = tuple(name for name in old.extra_files if not name.endswith(INDEX_SUFFIX))
    file = replace(old, extra_files=kept, embedded_file_index=None)
    if container is None:
        return BuiltIndex(unit=unit, file=file, index_bytes=0)
    if len(container) <= handle.options.file_index_in_manifest_threshold_bytes:
        file = replace(file, embedded_file_index=container)
        if file == old:
            # pypaimon treats a file as deleted if one commit deletes it and adds it again
            # unchanged.
            return None
        return BuiltIndex(unit=unit, file=file, index_bytes=len(container))
    # A new name, because older snapshots still refer to the old index file.
    name = f"{old.file_name}-{handle.environment.new_id()}{INDEX_SUFFIX}"
    storage, path = index_place(handle, unit.entry, name)
    try:
        with storage.open_output(path) as stream:
            stream.write(container)
    except BaseException:
        with suppress(LakeError):
            storage.delete(path)
        raise
    return BuiltIndex(
        unit=unit,
        file=replace(file, extra_files=(*kept, name)),
        index_bytes=len(container),
        written=(storage, path),
    )


def _encode(handle: TableHandle, unit: IndexUnit) -> bytes | None:
    """Return the file index of a data file; None if no index could be built.

    Deleted rows are indexed, too, because an index refers to positions in the file.
    """
    writer = FileIndexWriter(unit.wanted)
    rows = DataFiles(handle, unit.snapshot, DeletedRows(handle, ()))
    for batch in rows.rows(unit.entry, unit.fields):
        writer.add(pa.Table.from_batches([batch]))
    return writer.encode()


def _covered(container: bytes | None) -> Indexed:
    if container is None:
        return frozenset()
    bodies = decode_file_index(container, "a new index")
    return frozenset((column, kind) for column, kinds in bodies.items() for kind in kinds)
