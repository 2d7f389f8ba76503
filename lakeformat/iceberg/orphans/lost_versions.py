# SPDX-License-Identifier: Apache-2.0
"""Finds out if the newest metadata files of a table were lost, so that their files look like
orphans.
"""

from __future__ import annotations

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import (
    HINT,
    METADATA,
    find_version,
    hint_above,
    hinted_number,
    version_of,
)

__all__ = ["lost_versions"]


def lost_versions(handle: TableHandle) -> str | None:
    """Return the reason to delete no orphan files if newer metadata files may be lost; else None.

    Metadata files may be lost if the version hint has a higher number than the newest metadata
    file, and no metadata file has the number of the hint. A table of a catalog does not depend on
    the hint.
    """
    loaded = handle.load()
    storage, root = loaded.places.storage, loaded.places.root
    if version_of(loaded.path) is None:
        return None
    hinted = hinted_number(storage, root)
    if hinted is None or not _is_behind(loaded, hinted):
        return None
    loaded = handle.load()  # a commit may have written the hint after the first look
    if not _is_behind(loaded, hinted) or find_version(storage, root, hinted) is not None:
        return None
    name = loaded.metadata_file
    return (
        f"{hint_above(storage, root, hinted, name.rpartition('/')[2])}. The files of lost changes "
        "look like orphans, so no orphan file is deleted. If metadata files were lost and no "
        "commit was made since, restore them from a backup. Otherwise, or without a backup, write "
        f"{version_of(loaded.path)} into {storage.uri(f'{root}/{METADATA}/{HINT}')}, a text file "
        "with only this number"
    )


def _is_behind(loaded: LoadedMetadata, hinted: int) -> bool:
    number = version_of(loaded.path)
    return number is not None and number < hinted
