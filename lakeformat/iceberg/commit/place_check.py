# SPDX-License-Identifier: Apache-2.0
"""Checks that readers find a metadata file that was just published.

The number of a metadata file can become free again: a later commit may delete old files, or the
table may be dropped. A writer that paused until then would create a file that no reader finds.
"""

from __future__ import annotations

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata, digest_of
from lakeformat.iceberg.metadata.metadata_file import (
    decode_metadata,
    find_metadata_file,
    find_version,
    version_of,
)
from lakeformat.iceberg.metadata.snapshot import MetadataLogEntry
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE

__all__ = ["is_in_place", "is_unchanged"]


def is_in_place(published: LoadedMetadata, base: LoadedMetadata) -> bool:
    """Return True if readers find the published file.

    Readers find it if ``base``, the metadata file before it, still exists, or if later commits
    to the same table followed it. Commits delete the oldest files first. So if ``base`` still
    exists, the number of the published file cannot have become free again.
    """
    storage, root = base.places.storage, base.places.root
    if (there := _content_if_present(storage, base.path)) is not None:
        # The digest spares most commits the decoding of their base.
        is_same = digest_of(there) == base.digest
        return is_same or decode_metadata(there, storage.uri(base.path)) == base.metadata
    newest = find_metadata_file(storage, root)
    if newest == published.path:
        return False  # the table was dropped, so this file is the only one
    if not storage.exists(published.path):  # a later commit deleted it, or the table was dropped
        current = decode_metadata(storage.read(newest, LARGE_FILE), storage.uri(newest))
        return current.table_uuid == base.metadata.table_uuid
    number = version_of(published.path)
    assert number is not None
    following = find_version(storage, root, number + 1)
    later = None if following is None else _content_if_present(storage, following)
    if following is None or later is None:
        return False
    return _follows(decode_metadata(later, storage.uri(following)), published, base)


def is_unchanged(published: LoadedMetadata) -> bool:
    """Return True if the published file still exists with its content.

    In a table that was created again, the path may have another file.
    """
    content = _content_if_present(published.places.storage, published.path)
    return content is not None and digest_of(content) == published.digest


def _follows(later: TableMetadata, published: LoadedMetadata, base: LoadedMetadata) -> bool:
    """Return True if ``later`` lists the published file as the newest in its log, and has the new
    snapshots of that file.
    """
    named = MetadataLogEntry(published.metadata.last_updated_ms, published.metadata_file)
    ours = _snapshot_ids(published.metadata) - _snapshot_ids(base.metadata)
    return later.metadata_log[-1:] == (named,) and ours <= _snapshot_ids(later)


def _snapshot_ids(metadata: TableMetadata) -> set[int]:
    return {each.snapshot_id for each in metadata.snapshots}


def _content_if_present(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path, LARGE_FILE)
    except NotFoundError:
        return None
