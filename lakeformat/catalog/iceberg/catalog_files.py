# SPDX-License-Identifier: Apache-2.0
"""Opens files of tables at addresses that a catalog names.

Any program with write access to the catalog can make the catalog name any file. So only files
below the warehouse, or below a directory that the option ``external-roots`` allows, are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakeformat.catalog.iceberg.vended import options_for
from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.iceberg.file_places import FilePlaces, places_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import (
    METADATA,
    metadata_directory,
    read_metadata_file,
)
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import ExternalRoots, LocalStorage, Storage, open_storage
from lakeformat.storage.location import SCHEME, Location, location_of
from lakeformat.storage.object_address import OBJECT_SCHEMES
from lakeformat.types.sentence import sentence

__all__ = ["Answer", "CatalogFiles"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a catalog about one table: its current metadata file, and storage options.

    The repr leaves out the storage options, because some are secrets.
    """

    metadata_file: str
    """The URI of the current metadata file."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The storage options that the catalog sends for this table, with Iceberg's keys."""


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """Opens metadata files below the warehouse, and below allowed directories outside of it."""

    storage: Storage | None
    """The storage of the warehouse; None if the warehouse is only a name that the catalog knows."""
    root: str
    options: Mapping[str, str] = field(repr=False)
    external_roots: ExternalRoots

    def load(self, table: str, answer: Answer, known: LoadedMetadata | None) -> LoadedMetadata:
        """Return the content of the metadata file that the catalog names.

        If ``known`` was read from this file, its content is used again; else the file is read.
        A file outside of the allowed directories raises ``InvalidRequestError``.
        """
        near = self._near(answer)
        storage, path = self._place(answer.metadata_file, near, table)
        if known is not None and known.path == path:
            metadata = known.metadata
        else:
            metadata = read_metadata_file(storage, path)
        _require_own_file(table, answer.metadata_file, metadata)
        storage, root = self._place(metadata.location, near, table)
        places = places_of(storage, root, metadata.location, self.external_roots)
        return LoadedMetadata(replace(places, catalog_name=table), metadata, path)

    def new_places(self, table: str, location: str) -> FilePlaces:
        """Return the directories in which a new table at the URI ``location`` may have files.

        A location outside of the allowed directories raises ``InvalidRequestError``.
        """
        storage, root = self._place(location, self.storage or LocalStorage(), table)
        return places_of(storage, root, location, self.external_roots)

    def _near(self, answer: Answer) -> Storage:
        """Return the storage of the metadata file.

        An object store is opened with the caller's options and the options that the catalog sends.
        """
        match = SCHEME.match(answer.metadata_file)
        if match is None or match[1].lower() not in OBJECT_SCHEMES:
            return self.storage or LocalStorage()
        options = options_for(answer.metadata_file, answer.storage_options, self.options)
        if self.storage is not None and options == self.options:
            return self.storage
        return open_storage(answer.metadata_file, options)[0]

    def _place(self, address: str, near: Storage, table: str) -> tuple[Storage, str]:
        try:
            found = location_of(address)
        except InvalidRequestError as reason:
            raise CorruptTableError(
                f"the catalog, or the metadata file that it names, gives table {table} the address "
                f"{address!r}: {sentence(reason)} Correct the address there"
            ) from None
        walls = ExternalRoots((*self._warehouse(), *self.external_roots.locations))
        if not walls.allow(found):
            raise self._outside(address, found, table)
        return walls.place(address, near, table)

    def _warehouse(self) -> tuple[Location, ...]:
        if self.storage is None:
            return ()
        return (location_of(self.storage.uri(self.root), is_literal=False),)

    def _outside(self, address: str, found: Location, table: str) -> InvalidRequestError:
        if self.storage is None:
            outside = (
                "it is in no directory of external-roots, and the warehouse of the catalog is a "
                "name, not a directory"
            )
        else:
            outside = f"it is outside of the warehouse {self.storage.uri(self.root)}"
        # <database>/<table>/metadata/<file>
        above = found.above(3 if found.segments[-2:-1] == (METADATA,) else 1)
        return InvalidRequestError(
            f"the catalog gives table {table} the address {address}; {outside}. Any program "
            "that writes to the catalog can name any address, so only files in allowed directories "
            f"are read. If the address is right, allow its directory: external-roots={above} as "
            f"option of the catalog or connection, or lake --external-root {above}"
        )


def _require_own_file(table: str, address: str, metadata: TableMetadata) -> None:
    """Raise ``InvalidRequestError`` unless the file ``address`` is in the metadata directory that
    its content, ``metadata``, names.
    """
    directory = metadata_directory(metadata)
    if location_of(address).above(1) != location_of(directory):
        raise InvalidRequestError(
            f"the catalog names {address} as the metadata of table {table}, but that file is of a "
            f"table at {metadata.location}, which keeps its metadata in {directory}. The table was "
            "moved or copied, or the catalog names the wrong file: correct the catalog"
        )
