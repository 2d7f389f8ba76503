# SPDX-License-Identifier: Apache-2.0
"""The pointer to the metadata of a table that a catalog keeps."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from lakeformat.catalog.iceberg.catalog_files import Answer, CatalogFiles
from lakeformat.catalog.names import TableName
from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata

__all__ = ["CatalogPointer", "Names"]


class Names(Protocol):
    """A metastore that names the metadata file of each table."""

    def answer(self, name: TableName) -> Answer:
        """Return the current metadata file of a table; ``NotFoundError`` without one."""
        ...


class CatalogPointer:
    """Asks the catalog for the current metadata file at each call."""

    def __init__(self, names: Names, name: TableName, files: CatalogFiles) -> None:
        self._names = names
        self._name = name
        self._files = files
        self._answer: Answer | None = None
        self._known: LoadedMetadata | None = None

    @property
    def uri(self) -> str:
        """The address of the table, which only its metadata has."""
        return (self._known or self.load()).places.uri

    def load(self) -> LoadedMetadata:
        """Return the current metadata; new options of the storage cost no other reading."""
        answer = self._names.answer(self._name)
        if self._known is None or answer != self._answer:
            self._known = self._files.load(str(self._name), answer, self._known)
            self._answer = answer
        return self._known

    def require_writable(self) -> None:
        """Refuse every change."""
        raise UnsupportedError(
            f"table '{self._name}' is in a catalog, whose tables this version only reads: write "
            "with Spark, Flink or PyIceberg"
        )

    def turn(self) -> AbstractContextManager[None]:
        """Wait for nothing: the catalog decides which writer is first."""
        return nullcontext()

    def publish(self, base: LoadedMetadata, metadata: TableMetadata) -> LoadedMetadata | None:
        """Refuse, as ``require_writable`` does."""
        self.require_writable()
        return None
