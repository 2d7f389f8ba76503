# SPDX-License-Identifier: Apache-2.0
"""Deletes old metadata files after a commit, if a table property asks for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from lakeformat.errors import LakeError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import is_metadata_file
from lakeformat.iceberg.properties import bool_property
from lakeformat.types.sentence import sentence

__all__ = ["delete_old_metadata"]

_DELETE_OLD = "write.metadata.delete-after-commit.enabled"
_log = logging.getLogger(__name__)


def delete_old_metadata(base: LoadedMetadata, published: LoadedMetadata) -> None:
    """Delete the metadata files that are in the metadata log of ``base`` but not of ``published``.

    Nothing is deleted unless the property ``write.metadata.delete-after-commit.enabled`` is true.
    The oldest file is deleted first. The file of ``published``, files outside of the table, and
    files that are not metadata files are kept. A failure, even a wrong property, is only logged,
    because the commit has succeeded.
    """
    try:
        for path in _unlisted(base, published):
            base.places.storage.delete(path)
    except LakeError as error:
        _log.warning(
            "old metadata files of %s were not deleted: %s Later, remove_orphans(dry_run=False) "
            "deletes them",
            base.places.uri,
            sentence(error),
        )


def _unlisted(base: LoadedMetadata, published: LoadedMetadata) -> Iterator[str]:
    if not bool_property(published.metadata.properties, _DELETE_OLD, default=False):
        return
    kept = {each.metadata_file for each in published.metadata.metadata_log}
    for entry in base.metadata.metadata_log:
        path = base.places.path_below(entry.metadata_file)
        if entry.metadata_file in kept or path is None or path == published.path:
            continue
        if is_metadata_file(path.rpartition("/")[2]):  # any program can write any log
            yield path
