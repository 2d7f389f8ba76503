# SPDX-License-Identifier: Apache-2.0
"""Deletes old metadata files after a commit, if a table property asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from lakeformat.errors import LakeError
from lakeformat.iceberg.commit.place_check import DELETES_OLD, is_unchanged
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import (
    METADATA,
    find_version,
    is_metadata_file,
    version_of,
)
from lakeformat.iceberg.properties import bool_property
from lakeformat.types.sentence import sentence

__all__ = ["delete_old_metadata", "delete_old_versions"]

_MOST_AT_ONCE = 100
_CHECKED_EACH = 20
"""The number of deletions after which the published file is read again. The file may be large, so
it is not read before each deletion.
"""
_log = logging.getLogger(__name__)


def delete_old_metadata(base: LoadedMetadata, published: LoadedMetadata) -> None:
    """Delete the metadata files that are in the metadata log of ``base`` but not of ``published``.

    Files are only deleted if the property ``write.metadata.delete-after-commit.enabled`` is true.
    The oldest file is deleted first. The file of ``published``, files outside of the table, and
    files that are not metadata files are kept. A failure, even a wrong property, is only logged,
    because the commit has succeeded.
    """
    _delete(base, _unlisted(base, published))


def delete_old_versions(
    base: LoadedMetadata, published: LoadedMetadata, if_replaced: Callable[[], None]
) -> None:
    """Delete old metadata files as ``delete_old_metadata`` does, for a table without a catalog.

    Delete at most 100 of the files that are no longer in the log. N is the number of the first one.
    If ``v<N-1>.metadata.json`` still exists, first delete the files with lower numbers than N. If
    there are more than 100 of these, delete only 100 of them, and leave all other files to the next
    commit. This order is necessary: if ``v<N>`` were deleted and ``v<N-1>`` still existed, a paused
    writer could publish N again.

    Read the published file before the first deletion, and again after every 20 deletions; the files
    below N do not count. If the published file is missing or has other content, call
    ``if_replaced`` and stop: later commits may have deleted the file, or the table may have been
    dropped and created again.
    """
    _delete(base, _unlisted_versions(base, published, if_replaced))


def _delete(base: LoadedMetadata, paths: Iterable[str]) -> None:
    try:
        for path in paths:
            base.places.storage.delete(path)
    except LakeError as error:
        _log.warning(
            "old metadata files of %s were not deleted: %s To delete them later, call "
            "remove_orphans(dry_run=False)",
            base.places.uri,
            sentence(error),
        )


def _unlisted(base: LoadedMetadata, published: LoadedMetadata) -> Iterator[str]:
    if not bool_property(published.metadata.properties, DELETES_OLD, default=False):
        return
    kept = {each.metadata_file for each in published.metadata.metadata_log}
    for entry in base.metadata.metadata_log:
        path = base.places.path_below(entry.metadata_file)
        if entry.metadata_file in kept or path is None or path == published.path:
            continue
        if is_metadata_file(path.rpartition("/")[2]):  # any program can write any log
            yield path


def _unlisted_versions(
    base: LoadedMetadata, published: LoadedMetadata, if_replaced: Callable[[], None]
) -> Iterator[str]:
    for place, path in enumerate(islice(_unlisted(base, published), _MOST_AT_ONCE)):
        if place % _CHECKED_EACH == 0 and not is_unchanged(published):
            if_replaced()
            return
        below = [] if place else _left_below(path, published)
        yield from below[:_MOST_AT_ONCE]
        if len(below) > _MOST_AT_ONCE:
            return  # the next commit deletes more
        yield path


def _left_below(path: str, published: LoadedMetadata) -> list[str]:
    """Return the files with lower numbers than ``path``, the lowest number first.

    Return an empty list if the file with the number right below does not exist. A file is only
    returned if its number is lower than all numbers in the log of ``published``.
    """
    storage, directory = published.places.storage, f"{published.places.root}/{METADATA}"
    number = version_of(path)
    if not number or path.rpartition("/")[0] != directory:
        return []
    if find_version(storage, published.places.root, number - 1) is None:
        return []
    log = (version_of(each.metadata_file) for each in published.metadata.metadata_log)
    lowest = min([number, *(each for each in log if each is not None)])
    found = ((version_of(info.name), info.path) for info in storage.list(directory))
    below = sorted((each, path) for each, path in found if each is not None and each < lowest)
    return [path for _, path in below]
