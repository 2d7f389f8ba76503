# SPDX-License-Identifier: Apache-2.0
"""Deletes the files of a dropped table: only those that its metadata names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.expire.exclusive_files import ExclusiveFiles, find_exclusive_files
from lakeformat.iceberg.expire.select import require_gc
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import is_metadata_file
from lakeformat.tables.deleter import Deleted, Deleter
from lakeformat.tables.removal import FileClass, Removal

__all__ = ["files_to_purge", "purge"]

_REASON = "its table is dropped"


def files_to_purge(loaded: LoadedMetadata) -> ExclusiveFiles:
    """Return the files of all snapshots, followed by the metadata files.

    Files outside of the table are only counted, unless the caller allows their directories. Raise
    ``UnsupportedError`` if the property ``gc.enabled`` is false.
    """
    require_gc(loaded.metadata)
    nothing = replace(loaded.metadata, snapshots=(), statistics=(), partition_statistics=())
    found = find_exclusive_files(loaded, nothing)
    found.steps = [[replace(each, reason=_REASON) for each in step] for step in found.steps]
    found.steps.append([*_metadata_files(loaded, found)])
    return found


def purge(files: ExclusiveFiles) -> Deleted:
    """Delete the files and return the counts; each file that cannot be deleted is logged."""
    deleter = Deleter(later="The table is dropped: delete the file by hand")
    for step in files.steps:
        deleter.remove(step)
    return deleter.deleted


def _metadata_files(loaded: LoadedMetadata, found: ExclusiveFiles) -> Iterator[Removal]:
    """Yield the metadata files of the log, then the current one.

    Files in directories that are not allowed are only counted, in ``found``.
    """
    log = [each.metadata_file for each in loaded.metadata.metadata_log]
    for address in log:
        try:
            storage, path = loaded.places.place(address)
        except InvalidRequestError:
            found.outside += 1
            continue
        if is_metadata_file(path.rpartition("/")[2]) and path != loaded.path:
            yield Removal(storage, path, FileClass.METADATA, _REASON)
    yield Removal(loaded.places.storage, loaded.path, FileClass.METADATA, _REASON)
