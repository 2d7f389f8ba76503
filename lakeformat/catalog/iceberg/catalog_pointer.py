# SPDX-License-Identifier: Apache-2.0
"""Reads and publishes the current metadata of a table through its catalog."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.names import TableName
from lakeformat.iceberg.commit.pointer import SentPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.lease import KeepsLeases, Leases

__all__ = ["CatalogPointer", "Names"]


class Names(Protocol):
    """The operations of a catalog service that ``CatalogPointer`` needs."""

    def answer(self, name: TableName) -> Answer:
        """Return the metadata file and storage options of a table, or raise ``NotFoundError``."""
        ...

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if this library cannot write tables of this metastore."""
        ...

    def publish(
        self, name: TableName, current: Answer, base: LoadedMetadata, metadata: TableMetadata
    ) -> tuple[Answer, LoadedMetadata] | None:
        """Publish ``metadata`` if the catalog still names ``current``, the metadata file of
        ``base``.

        Return the catalog's new answer and the published metadata; None if another writer was
        first. Raise the same errors as ``MetadataPointer.publish``.
        """
        ...


class CatalogPointer:
    """The pointer to the metadata of one table; each ``load`` asks the catalog for the current
    file.
    """

    def __init__(self, names: Names, name: TableName, files: CatalogFiles) -> None:
        self._names = names
        self._name = name
        self._files = files
        self._known: tuple[Answer, LoadedMetadata] | None = None

    def __reduce__(self) -> tuple[type[SentPointer], tuple[LoadedMetadata]]:
        """Pickle only the loaded metadata.

        Another process that receives the pickle does not get the login of the catalog.
        """
        return SentPointer, (self.load(),)

    @property
    def uri(self) -> str:
        """The URI of the table, which is read from its metadata."""
        return (self.load() if self._known is None else self._known[1]).places.uri

    def load(self) -> LoadedMetadata:
        """Return the current metadata.

        If the catalog still names the same file, this file is not read again, even if the catalog
        sends other storage options.
        """
        answer = self._names.answer(self._name)
        if self._known is None or answer != self._known[0]:
            known = None if self._known is None else self._known[1]
            self._known = answer, self._files.load(str(self._name), answer, known)
        return self._known[1]

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if this library cannot write tables of this metastore, or if
        the table is the published form of a Paimon table.
        """
        self._names.require_writable()
        if self._known is not None:  # each commit checks the newest metadata
            self._known[1].metadata.refuse_published()

    def turn(self) -> AbstractContextManager[None]:
        """Return a context manager that takes no lock: the catalog accepts only one of two
        concurrent commits.
        """
        return nullcontext()

    def leases(self, key: str) -> Leases | None:
        """Return the leases of the table with the uuid ``key``; None if the catalog keeps none."""
        return self._names.leases(key) if isinstance(self._names, KeepsLeases) else None

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> LoadedMetadata | None:
        """Publish ``metadata`` and return it with its file.

        Return None if another writer has published since ``base`` was loaded.
        """
        if self._known is None or self._known[1].path != base.path:
            return None
        found = self._names.publish(self._name, self._known[0], base, metadata)
        if found is None:
            return None
        self._known = found
        return found[1]
