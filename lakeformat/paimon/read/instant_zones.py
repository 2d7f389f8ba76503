# SPDX-License-Identifier: Apache-2.0
"""Chooses the file format of a rewrite by the time zones in which ORC files were written.

By default, ORC files store instants in the time zone of their writer. This library writes them in
UTC, and a JVM outside UTC would misread them. So if such JVMs wrote the existing ORC files, the
rewrite writes Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakeformat.files.data_file import naming_file
from lakeformat.files.file_format import FileFormat
from lakeformat.files.orc.tail import file_zones
from lakeformat.paimon.datafile.instant_format import keeping_instants
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows

__all__ = ["rewriting_instants"]


def rewriting_instants(
    handle: TableHandle, snapshot: Snapshot | None, entries: Iterable[ManifestEntry]
) -> TableHandle:
    """Return a handle that rewrites the rows of ``entries`` without shifting their instants.

    If JVMs outside UTC write the ORC files of the table, the handle writes Parquet in place of ORC.
    """
    schema = keeping_instants(handle.schema, _zones(handle, snapshot, entries))
    return handle if schema is handle.schema else replace(handle, schema=schema)


def _zones(
    handle: TableHandle, snapshot: Snapshot | None, entries: Iterable[ManifestEntry]
) -> Iterator[str]:
    if snapshot is None:
        return
    files = DataFiles(handle, snapshot, DeletedRows(handle, ()))
    for entry in entries:
        if entry.file.file_name.endswith(FileFormat.ORC):
            storage, path = files.place(entry)
            with naming_file(storage.uri(path)), storage.open_input(path) as stream:
                yield from file_zones(stream)
