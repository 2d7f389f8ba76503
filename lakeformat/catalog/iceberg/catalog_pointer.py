# SPDX-License-Identifier: Apache-2.0
"""The pointer to the metadata of a table that a catalog keeps."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.names import TableName
from lakeformat.iceberg.commit.pointer import SentPointer
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["CatalogPointer", "Names"]


class Names(Protocol):
    """A metastore that names the metadata file of each table."""

    def answer(self, name: TableName) -> Answer:
        """Return the current metadata file of a table; ``NotFoundError`` without one."""
        ...

    def require_writable(self) -> None:
        """Raise ``UnsupportedError`` if this version only reads the tables of the metastore."""
        ...

    def publish(
        self, name: TableName, current: Answer, base: LoadedMetadata, metadata: TableMetadata
    ) -> tuple[Answer, LoadedMetadata] | None:
        """Publish metadata if ``current`` is still the answer, which names the file of ``base``.

        Return None if it is not. Errors are those of ``MetadataPointer.publish``.
        """
        ...


class CatalogPointer:
    """Asks the catalog for the current metadata file at each call."""

    def __init__(self, names: Names, name: TableName, files: CatalogFiles) -> None:
        self._names = names
        self._name = name
        self._files = files
        self._known: tuple[Answer, LoadedMetadata] | None = None

    def __reduce__(self) -> tuple[type[SentPointer], tuple[LoadedMetadata]]:
        """Pickle the metadata without the catalog, so that tasks do not get its login."""
        return SentPointer, (self.load(),)

    @property
    def uri(self) -> str:
        """The address of the table, which only its metadata has."""
        return (self.load() if self._known is None else self._known[1]).places.uri

    def load(self) -> LoadedMetadata:
        """Return the current metadata; if only options of the storage are new, no file is read
        again.
        """
        answer = self._names.answer(self._name)
        if self._known is None or answer != self._known[0]:
            known = None if self._known is None else self._known[1]
            self._known = answer, self._files.load(str(self._name), answer, known)
        return self._known[1]

    def require_writable(self) -> None:
        """Refuse metastores whose tables this version only reads."""
        self._names.require_writable()

    def turn(self) -> AbstractContextManager[None]:
        """Wait for nothing: the catalog decides which writer is first."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> LoadedMetadata | None:
        """Publish metadata; None if the catalog names another file than that of ``base``."""
        if self._known is None or self._known[1].path != base.path:
            return None
        found = self._names.publish(self._name, self._known[0], base, metadata)
        if found is None:
            return None
        self._known = found
        return found[1]
