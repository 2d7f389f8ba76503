# SPDX-License-Identifier: Apache-2.0
"""The pointer to the current metadata of a table: the only part of a table that changes.

The directory of a table is one, a catalog another.
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
    """Finds the current metadata of one table, and replaces it."""

    @property
    def uri(self) -> str:
        """The address of the table, for messages."""
        ...

    def load(self) -> LoadedMetadata:
        """Return the current metadata; read its file only if another one is current than before."""
        ...

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if nothing can be published, before any file is written."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """Wait until other processes of this machine have made their attempts: then fewer fail."""
        ...

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> LoadedMetadata | None:
        """Publish metadata if ``base`` is still current; None if another writer was first.

        ``metadata`` already names ``base`` in its log. An error means that nothing was published,
        except ``CommitOutcomeUnknownError``: the storage or the catalog gave no answer.
        """
        ...


class SentPointer:
    """The metadata of a table as it was sent to another process, which may write files for it.

    Nothing is published there: the process that has the table commits the files.
    """

    def __init__(self, loaded: LoadedMetadata) -> None:
        self._loaded = loaded

    @property
    def uri(self) -> str:
        """The address of the table."""
        return self._loaded.places.uri

    def load(self) -> LoadedMetadata:
        """Return the metadata, which never changes."""
        return self._loaded

    def require_writable(self) -> None:
        """Allow files to be written; the process that commits them checks the table."""

    def turn(self) -> AbstractContextManager[None]:
        """Wait for nothing."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> NoReturn:
        """Refuse: another process has the table."""
        raise UnsupportedError(
            f"{self.uri} was sent to this process without its catalog: return the messages of "
            "writer.prepare(), and commit them where the table was opened"
        )


class FixedPointer:
    """One metadata file, which the caller named: the table is read-only."""

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
        """The address of the table."""
        return self._storage.uri(self._root)

    def load(self) -> LoadedMetadata:
        """Return the content of the file, which never changes."""
        if self._known is None:
            self._known = load_metadata(self._storage, self._root, self._path, self._external_roots)
        return self._known

    def require_writable(self) -> NoReturn:
        """Refuse: a newer metadata file may be current."""
        raise UnsupportedError(
            f"{self.uri} was opened by its metadata file {self._storage.uri(self._path)}, so it is "
            "read-only: a newer file may be current. To change the table, open it through its "
            "catalog, or a table without a catalog by its directory"
        )

    def turn(self) -> AbstractContextManager[None]:
        """Wait for nothing."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> NoReturn:
        """Refuse, as ``require_writable`` does."""
        self.require_writable()
