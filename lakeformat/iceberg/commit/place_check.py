# SPDX-License-Identifier: Apache-2.0
"""Checks that readers find a metadata file that was just published.

The number of a metadata file can become free again: a later commit may delete old files, or the
table may be dropped. A writer that paused until then would create a file that no reader finds.
"""

from __future__ import annotations

from lakeformat.errors import CommitOutcomeUnknownError, NotFoundError
from lakeformat.iceberg.commit.kept_changes import has_changes
from lakeformat.iceberg.loaded_metadata import LoadedMetadata, digest_of
from lakeformat.iceberg.metadata.metadata_file import (
    decode_metadata,
    find_metadata_file,
    find_version,
    hinted_number,
    version_of,
)
from lakeformat.iceberg.metadata.snapshot import MetadataLogEntry
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE

__all__ = ["DELETES_OLD", "is_unchanged", "newest_if_in_place"]

DELETES_OLD = "write.metadata.delete-after-commit.enabled"
"""The table property for the deletion of old metadata files by each commit."""


def newest_if_in_place(published: LoadedMetadata, base: LoadedMetadata) -> str | None:
    """Return the path of the newest metadata file, or None.

    The result is None if the published file never became the current metadata of the table.
    Otherwise the newest file is the published one, or a later one of the same table.

    Later files are only searched if another commit may have used the published number before, and
    its file may have been deleted. This is possible in two cases:

    - ``base``, the metadata file before the published one, is missing. Commits of this library
      delete the oldest files first, so they delete ``base`` before a file with a higher number.
    - The table property ``DELETES_OLD`` is true, and the version hint is above the published
      number. Other programs delete files in any order, so ``base`` may still exist.

    Raise ``CommitOutcomeUnknownError`` if the published file was deleted and later metadata does
    not have its changes.
    """
    storage, root = base.places.storage, base.places.root
    is_base_there = False
    if (there := _content_if_present(storage, base.path)) is not None:
        # The digest spares most commits the decoding of their base.
        is_same = digest_of(there) == base.digest
        is_same = is_same or decode_metadata(there, storage.uri(base.path)) == base.metadata
        if not is_same or not _may_be_behind(published, base):
            return published.path if is_same else None
        is_base_there = True
    newest = find_metadata_file(storage, root)
    if newest == published.path:  # if base is missing, the table was dropped
        return newest if is_base_there else None
    return newest if _was_followed(published, base, newest) else None


def _was_followed(published: LoadedMetadata, base: LoadedMetadata, newest: str) -> bool:
    """Return True if later commits to the same table build on the published file."""
    storage, root = base.places.storage, base.places.root
    current = decode_metadata(storage.read(newest, LARGE_FILE), storage.uri(newest))
    new_ids = _snapshot_ids(published.metadata) - _snapshot_ids(base.metadata)
    is_same_table = current.table_uuid == base.metadata.table_uuid
    if is_same_table and new_ids and new_ids <= _snapshot_ids(current):
        return True
    if not storage.exists(published.path):  # a later commit deleted it, or the table was dropped
        if is_same_table and (
            new_ids or not has_changes(current, published.metadata, base.metadata)
        ):
            raise CommitOutcomeUnknownError(
                "the file was deleted, and the newest metadata lacks the changes of this commit"
            )
        return is_same_table
    number = version_of(published.path)
    assert number is not None
    following = find_version(storage, root, number + 1)
    later = None if following is None else _content_if_present(storage, following)
    if following is None or later is None:
        return False
    return _follows(decode_metadata(later, storage.uri(following)), published, new_ids)


def _may_be_behind(published: LoadedMetadata, base: LoadedMetadata) -> bool:
    """Return True if commits delete old files and the hint is above the published number."""
    if base.metadata.properties.get(DELETES_OLD, "false").lower() != "true":
        return False
    hinted = hinted_number(base.places.storage, base.places.root)
    number = version_of(published.path)
    return hinted is not None and number is not None and hinted > number


def is_unchanged(published: LoadedMetadata) -> bool:
    """Return True if the published file still exists with its content.

    In a table that was created again, the path may have another file.
    """
    content = _content_if_present(published.places.storage, published.path)
    return content is not None and digest_of(content) == published.digest


def _follows(later: TableMetadata, published: LoadedMetadata, new_ids: set[int]) -> bool:
    """Return True if ``later`` lists the published file as the newest in its log, and has the
    snapshots ``new_ids``.
    """
    named = MetadataLogEntry(published.metadata.last_updated_ms, published.metadata_file)
    return later.metadata_log[-1:] == (named,) and new_ids <= _snapshot_ids(later)


def _snapshot_ids(metadata: TableMetadata) -> set[int]:
    return {each.snapshot_id for each in metadata.snapshots}


def _content_if_present(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path, LARGE_FILE)
    except NotFoundError:
        return None
