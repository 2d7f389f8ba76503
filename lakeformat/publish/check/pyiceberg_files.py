# SPDX-License-Identifier: Apache-2.0
"""Lets PyIceberg read a table with the storage client and the credentials of this library."""

from __future__ import annotations

from typing import IO

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata

__all__ = ["pyiceberg_table"]


def pyiceberg_table(loaded: LoadedMetadata) -> StaticTable:
    """Open the table that a metadata file describes, as a PyIceberg table that cannot be
    changed.
    """
    files = _ReadOnlyFileIO(loaded.places)
    address = loaded.metadata_file
    return StaticTable(
        identifier=("published", address),
        metadata=FromInputFile.table_metadata(files.new_input(address)),
        metadata_location=address,
        io=files,
        catalog=NoopCatalog("published"),
    )


class _ReadOnlyFile(InputFile):  # type: ignore[misc]
    def __init__(self, location: str, places: FilePlaces) -> None:
        super().__init__(location)
        self._places = places

    def __len__(self) -> int:
        with self.open() as stream:
            return int(stream.seek(0, 2))

    def exists(self) -> bool:
        storage, path = self._places.place(self.location)
        return storage.exists(path)

    def open(self, seekable: bool = True) -> IO[bytes]:
        storage, path = self._places.place(self.location)
        return storage.open_input(path)


class _ReadOnlyFileIO(FileIO):  # type: ignore[misc]
    def __init__(self, places: FilePlaces) -> None:
        super().__init__()
        self._places = places

    def new_input(self, location: str) -> InputFile:
        return _ReadOnlyFile(location, self._places)

    def new_output(self, location: str) -> OutputFile:
        raise UnsupportedError(f"{location} cannot be written: a check changes nothing")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise UnsupportedError(f"{location} cannot be deleted: a check changes nothing")
