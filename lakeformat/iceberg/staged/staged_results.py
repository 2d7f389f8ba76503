# SPDX-License-Identifier: Apache-2.0
"""Finds the files of staged results: ``staged/<uuid>/staged-<name>`` in ``_lake``, or in the
directory of a branch inside of it.

``<uuid>`` is the UUID of the table, if it has one. So the results of a dropped table that had the
same directory are not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.own_files import own_directory
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.tables.staged.files import StagedFiles

__all__ = ["staged_results"]


def staged_results(handle: TableHandle) -> StagedFiles[IcebergCommitMessage]:
    """Return the staged results of a branch."""
    storage, directory = own_directory(handle, "staged")
    loaded = handle.load()
    if uuid := loaded.metadata.table_uuid:
        directory = f"{directory}/{quote(uuid, safe='')}"
    root = loaded.places.root
    return StagedFiles(storage, directory, IcebergCommitMessage.from_bytes, _sizes, root)


def _sizes(message: IcebergCommitMessage) -> Iterator[tuple[int, int]]:
    columns = (message.entries[name] for name in ("record_count", "file_size_in_bytes"))
    rows, sizes = (column.to_pylist() for column in columns)
    return zip(rows, sizes, strict=True)
