# SPDX-License-Identifier: Apache-2.0
"""The current metadata of a table without a catalog: the file ``v<N>.metadata.json`` with the
highest N.

A commit is published when ``Storage.create`` creates the file with the next number. The version
hint is written afterwards, and may be outdated.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from lakeformat.environment import Environment
from lakeformat.errors import CommitOutcomeUnknownError, LakeError, UnsupportedError
from lakeformat.iceberg.commit.old_metadata import delete_old_versions
from lakeformat.iceberg.commit.place_check import is_unchanged, newest_if_in_place
from lakeformat.iceberg.loaded_metadata import LoadedMetadata, digest_of, load_metadata
from lakeformat.iceberg.metadata.metadata_file import (
    HINT,
    METADATA,
    decode_metadata,
    find_metadata_file,
    find_version,
    version_of,
)
from lakeformat.iceberg.metadata.metadata_json import encode_metadata, file_ending
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import ExternalRoots, Storage
from lakeformat.storage.creation_proof import ProvesCreation
from lakeformat.storage.turns import turn
from lakeformat.tables.create_once import create_once
from lakeformat.types.sentence import sentence

__all__ = ["DirectoryPointer", "write_hint"]

_log = logging.getLogger(__name__)


class DirectoryPointer:
    """Reads and publishes the metadata of a table without a catalog."""

    def __init__(
        self, storage: Storage, root: str, external_roots: ExternalRoots, environment: Environment
    ) -> None:
        self._storage = storage
        self._root = root
        self._external_roots = external_roots
        self._environment = environment
        self._known: LoadedMetadata | None = None

    @property
    def uri(self) -> str:
        """The URI of the table."""
        return self._storage.uri(self._root)

    def load(self) -> LoadedMetadata:
        """Return the current metadata.

        Raise ``NotFoundError`` if the directory holds no Iceberg table.
        """
        path = find_metadata_file(self._storage, self._root)
        if self._known is None or self._known.path != path:
            self._known = load_metadata(self._storage, self._root, path, self._external_roots)
        return self._known

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if the table belongs to a catalog, if its metadata is
        published for a Paimon table, or if its storage is unsafe.

        A storage is unsafe if it replaces an existing file instead of refusing to create it.
        """
        known = self._known
        if known is None or version_of(known.path) is None:  # ``publish`` checks the newest one
            known = self.load()
        self._next_number(known)
        known.metadata.refuse_published()
        if isinstance(self._storage, ProvesCreation):
            self._storage.prove_creation(f"{self._root}/{METADATA}/v1.metadata.json")

    def turn(self) -> AbstractContextManager[None]:
        """Return a context that waits for other commits of this machine to the same table."""
        sleep = self._environment.sleep_seconds
        return turn(self._storage, f"{self._root}/{METADATA}", sleep)

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> LoadedMetadata | None:
        """Publish metadata as the file with the next number.

        The properties of ``base`` decide the compression. So all writers that compete for a number
        create the same file name, even if one of them changes the compression.
        Return None if another writer created that file first, or if readers would not find the
        file. Raise ``UnsupportedError`` if the table belongs to a catalog. After
        ``CommitOutcomeUnknownError`` the metadata may be published.
        """
        number = self._next_number(base)
        ending = file_ending(base.metadata)
        path = f"{self._root}/{METADATA}/v{number}{ending}"
        content = encode_metadata(metadata, ending)
        readable = decode_metadata(content, self._storage.uri(path))
        if find_version(self._storage, self._root, number) is not None:
            return None  # the number may exist with another compression in its name
        if not create_once(self._storage, path, content):
            return None
        published = LoadedMetadata(base.places, readable, path, digest_of(content))
        newest = self._newest_if_in_place(published, base)
        if newest is None:
            return None
        self._known = published
        write_hint(self._storage, self._root, version_of(newest) or number)
        delete_old_versions(base, published, self._correct_hint)
        return published

    def _correct_hint(self) -> None:
        """Write the highest existing number into the version hint.

        A writer that paused before it wrote the hint may have written an old number. Later commits
        may have deleted the file with this number, and another paused writer may have created it
        again. Then readers would take that file for the newest one.
        """
        found = (version_of(each.name) for each in self._storage.list(f"{self._root}/{METADATA}"))
        if highest := max((each for each in found if each is not None), default=0):
            write_hint(self._storage, self._root, highest)

    def _newest_if_in_place(self, published: LoadedMetadata, base: LoadedMetadata) -> str | None:
        """Return the path of the newest metadata file.

        If the published file never became the current metadata of the table, delete it and return
        None. If another writer has created a different file at its path, keep that file. Raise
        ``CommitOutcomeUnknownError`` if the check or the deletion fails.
        """
        try:
            if (newest := newest_if_in_place(published, base)) is not None:
                return newest
            if is_unchanged(published):
                self._storage.delete(published.path)
        except LakeError as error:
            raise CommitOutcomeUnknownError(
                f"{self._storage.uri(published.path)} was written, but it is unknown whether "
                f"readers find this file: {sentence(error)} If you committed with a CommitId, just "
                "retry: the change is published once. If not, look for the change in the table "
                "before you retry"
            ) from error
        self._known = None
        return None

    def _next_number(self, base: LoadedMetadata) -> int:
        number = version_of(base.path)
        if number is None:
            raise UnsupportedError(
                f"{self.uri} belongs to a catalog: its newest metadata file is "
                f"{base.metadata_file}, and only the catalog can make another one current. Open "
                "the table through its catalog to change it"
            )
        return number + 1


def write_hint(storage: Storage, root: str, number: int) -> None:
    """Write the version hint, from which readers search for the newest file.

    A failure is only logged.
    """
    try:
        storage.overwrite(f"{root}/{METADATA}/{HINT}", str(number).encode())
    except LakeError as error:
        # No traceback: the commit has succeeded, and the message explains the rest.
        _log.warning(
            "could not update the version hint of %s: %s No action needed: readers also look for "
            "newer files, and the next commit writes the hint",
            *(storage.uri(root), sentence(error)),
        )
