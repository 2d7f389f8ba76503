# SPDX-License-Identifier: Apache-2.0
"""Updates the entry of a catalog to the newest published metadata.

The metadata files decide which state is the newest; the catalog follows. Each attempt first reads
the entry, then looks up the newest metadata file. It changes the entry only if the entry still has
the content that was read. So a slow publication never sets an entry back to an older file. If a
catalog cannot check the content, the newest file is looked up again after the change, and the entry
is changed again if another file is the newest by then.
"""

from __future__ import annotations

import logging

from lakeformat.environment import Environment
from lakeformat.errors import AlreadyExistsError, CommitConflictError, CommitOutcomeUnknownError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.publish.targets.entry import CatalogEntry, Named, is_ours
from lakeformat.publish.versions import PublishedVersions

__all__ = ["OTHER_NAME", "follow"]

_log = logging.getLogger(__name__)
_ATTEMPTS = 10
OTHER_NAME = (
    "publish under another name with the options 'metadata.iceberg.database' and "
    "'metadata.iceberg.table', or drop that table from the catalog if it is no longer needed"
)
"""The advice for a table whose name belongs to another table in a catalog."""


def follow(
    entry: CatalogEntry, versions: PublishedVersions, environment: Environment, table: str
) -> bool:
    """Point the catalog to the newest metadata; return True if the entry was created or moved.

    Return False if the catalog already points to it, or if no metadata is published. Raise
    ``AlreadyExistsError`` if the catalog has another table with the same name. Raise
    ``CommitConflictError`` if other programs changed the entry in each attempt, and
    ``CommitOutcomeUnknownError`` if the outcome of an attempt remains unknown. ``table`` names the
    table in the command that an error advises.
    """
    lost: CommitOutcomeUnknownError | None = None
    is_changed = False
    for attempt in range(1, _ATTEMPTS + 1):
        named = entry.find()
        newest = versions.newest()
        if newest is None:
            return False
        if named is not None:
            _require_ours(entry, named, newest)
            if entry.shows(named, newest):
                return is_changed or lost is not None
        try:
            moved = entry.create(newest) if named is None else entry.move(named, newest)
            if moved is not False:
                _log.info("%s now shows the metadata file %s", entry.name, newest.metadata_file)
                is_changed = True
            if moved or (moved is None and _is_newest(versions, newest)):
                return True
        except CommitOutcomeUnknownError as error:
            lost = error  # the next look at the catalog decides
        environment.back_off(attempt, least_millis=20, longest_millis=1000)
    if lost is not None:
        raise lost
    raise CommitConflictError(
        f"{entry.name} does not have the newest metadata file, because other programs changed the "
        f"entry in each of {_ATTEMPTS} attempts. The metadata files are published: run `lake "
        f"publish {table}` again to update the entry"
    )


def _is_newest(versions: PublishedVersions, shown: LoadedMetadata) -> bool:
    """Return True if no newer file was published while the catalog replaced its entry."""
    newest = versions.newest()
    return newest is not None and newest.metadata_file == shown.metadata_file


def _require_ours(entry: CatalogEntry, named: Named, newest: LoadedMetadata) -> None:
    if is_ours(named, newest):
        return
    raise AlreadyExistsError(
        f"{entry.name} is another table, with the metadata {named.address}. Its entry was "
        f"not changed. {OTHER_NAME[0].upper()}{OTHER_NAME[1:]}"
    )
