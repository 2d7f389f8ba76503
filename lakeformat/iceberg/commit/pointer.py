# SPDX-License-Identifier: Apache-2.0
"""The pointer to the current metadata of a table, which each commit replaces.

``DirectoryPointer`` finds the metadata in the directory of the table, ``CatalogPointer`` asks a
catalog.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn, Protocol

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata, load_metadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import ExternalRoots, Storage

__all__ = ["FixedPointer", "MetadataPointer", "SentPointer"]


class MetadataPointer(Protocol):
    """Finds the current metadata of one table, and publishes new metadata."""

    @property
    def uri(self) -> str:
        """The URI of the table, for messages."""
        ...

    def load(self) -> LoadedMetadata:
        """Return the current metadata.

        If it has not changed since the last call, its file is not read again. Raise
        ``NotFoundError`` if the table does not exist.
        """
        ...

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if this pointer cannot publish.

        Call this method before files are written.
        """
        ...

    def turn(self) -> AbstractContextManager[None]:
        """Return a context manager for one attempt to commit.

        At its start it waits for other commits of this machine, so that fewer attempts fail.
        For some pointers it does nothing.
        """
        ...

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> LoadedMetadata | None:
        """Publish metadata if ``base`` is still current; return None if another writer was first.

        The metadata log of ``metadata`` must already name ``base``. After
        ``CommitOutcomeUnknownError`` it is unknown if the metadata is published, because the
        storage or the catalog gave no answer. After any other error it is not published.
        """
        ...


class SentPointer:
    """Metadata that was sent to another process, which may write data files for the table.

    That process publishes nothing: the process that sent the metadata commits the files.
    """

    def __init__(self, loaded: LoadedMetadata) -> None:
        self._loaded = loaded

    @property
    def uri(self) -> str:
        """The URI of the table."""
        return self._loaded.places.uri

    def load(self) -> LoadedMetadata:
        """Return the metadata, which never changes."""
        return self._loaded

    def require_writable(self) -> None:
        """Do nothing: the process that commits the data files checks if the table is writable."""

    def turn(self) -> AbstractContextManager[None]:
        """Return a context that does not wait."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> NoReturn:
        """Raise ``UnsupportedError``: only the process that sent the metadata can publish."""
        raise UnsupportedError(
            f"{self.uri} was sent to this process without its catalog: return the messages of "
            "writer.prepare(), and commit them in the process that opened the table"
        )


class FixedPointer:
    """A metadata file that the caller chose; the table is then read-only."""

    def __init__(
        self, storage: Storage, root: str, external_roots: ExternalRoots, path: str
    ) -> None:
        self._storage = storage
        self._root = root
        self._external_roots = external_roots
        self._path = path
        self._known: LoadedMetadata | None = None

    @property
    def uri(self) -> str:
        """The URI of the table."""
        return self._storage.uri(self._root)

    def load(self) -> LoadedMetadata:
        """Return the content of the file, which never changes."""
        if self._known is None:
            self._known = load_metadata(self._storage, self._root, self._path, self._external_roots)
        return self._known

    def require_writable(self) -> NoReturn:
        """Raise ``UnsupportedError``, because a newer metadata file may be the current one."""
        raise UnsupportedError(
            f"{self.uri} was opened by its metadata file {self._storage.uri(self._path)}, so it is "
            "read-only: a newer file may be current. To change the table, open it through its "
            "catalog. If it has no catalog, open it by its directory"
        )

    def turn(self) -> AbstractContextManager[None]:
        """Return a context that does not wait."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> NoReturn:
        """Raise ``UnsupportedError``, because the table is read-only."""
        self.require_writable()
