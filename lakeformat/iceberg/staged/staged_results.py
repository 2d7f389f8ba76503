# SPDX-License-Identifier: Apache-2.0
"""Finds the files of staged results.

Their path is ``staged/<uuid>/staged-<name>``, in ``_lake`` for main, and in the directory of the
branch inside ``_lake`` for another branch. ``<uuid>`` is the UUID of the table, if it has one. So
``staged_results`` does not find the results of a dropped table that had the same directory.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.own_files import every_directory, own_records
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.tables.staged.files import StagedFiles

__all__ = ["all_staged_results", "staged_results"]


def staged_results(handle: TableHandle) -> StagedFiles[IcebergCommitMessage]:
    """Return the staged results of a branch."""
    found = own_records(handle, "staged")
    return _files(found.loaded, found.directory)


def all_staged_results(handle: TableHandle) -> Iterator[StagedFiles[IcebergCommitMessage]]:
    """Yield the staged results of all branches of all tables that have or had the directory of
    ``handle``.
    """
    loaded = handle.load()
    return (_files(loaded, each) for each in every_directory(loaded, "staged"))


def _files(loaded: LoadedMetadata, directory: str) -> StagedFiles[IcebergCommitMessage]:
    places = loaded.places
    return StagedFiles(
        places.storage, directory, IcebergCommitMessage.from_bytes, _sizes, places.root
    )


def _sizes(message: IcebergCommitMessage) -> Iterator[tuple[int, int]]:
    columns = (message.entries[name] for name in ("record_count", "file_size_in_bytes"))
    rows, sizes = (column.to_pylist() for column in columns)
    return zip(rows, sizes, strict=True)
