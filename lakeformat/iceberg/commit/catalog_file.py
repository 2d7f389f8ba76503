# SPDX-License-Identifier: Apache-2.0
"""Writes a metadata file that a catalog then makes the current one."""

from __future__ import annotations

import re

from lakeformat.environment import Environment
from lakeformat.errors import CommitOutcomeUnknownError, UnavailableError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import decode_metadata, metadata_directory
from lakeformat.iceberg.metadata.metadata_json import encode_metadata, file_ending
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.create_once import create_once

__all__ = ["write_catalog_file"]
_NUMBER = re.compile(r"v?(\d{1,18})[-.]", re.ASCII)


def write_catalog_file(
    places: FilePlaces, metadata: TableMetadata, base_path: str | None, environment: Environment
) -> tuple[str, LoadedMetadata]:
    """Write the next metadata file of a table in a catalog; return its URI and its metadata.

    The file is named ``<N>-<uuid>.metadata.json``, or ``<N>-<uuid>.gz.metadata.json`` for the codec
    gzip. N is one more than the number in the name of ``base_path``, the current metadata file. N
    is 0 if the name has no number, and for a new table, whose ``base_path`` is None. Raise
    ``UnavailableError`` if the file could not be written.
    """
    found = None if base_path is None else _NUMBER.match(base_path.rpartition("/")[2])
    number = 0 if found is None else int(found[1]) + 1
    name = f"{number:05d}-{environment.new_id()}{file_ending(metadata)}"
    address = f"{metadata_directory(metadata)}/{name}"
    storage, path = places.place(address)
    content = encode_metadata(metadata)
    readable = decode_metadata(content, address)
    storage.make_directory(path.rpartition("/")[0])
    try:
        is_ours = create_once(storage, path, content)
    except CommitOutcomeUnknownError:
        is_ours = False
    if not is_ours:
        raise UnavailableError(
            f"the metadata file {address} could not be written. No catalog names it, so nothing "
            "was published: retry when the storage answers"
        )
    return address, LoadedMetadata(places, readable, path)
