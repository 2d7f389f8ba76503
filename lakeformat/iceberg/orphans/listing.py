# SPDX-License-Identifier: Apache-2.0
"""Lists the files in a table's directory, except the files of other tables below it.

As in Java, files are ignored if a name in their path begins with ``_`` or ``.``, except directories
of partitions such as ``_day=1``. Links are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.metadata_file import HINT, METADATA, is_metadata_file
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.storage import FileInfo, Storage
from lakeformat.tables.parallel import in_parallel

__all__ = ["TableListing", "list_files"]

_AT_A_TIME = 64
_HIDDEN = ("_", ".")
_SIGNS = {"_delta_log", ".hoodie"}
"""Directories that only tables of Delta Lake and Hudi have."""


@dataclass(slots=True)
class TableListing:
    """The files of a table, and the directories of other tables below it."""

    files: list[FileInfo] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    """Directories of other tables, whose files are not listed."""


def list_files(places: FilePlaces, metadata: TableMetadata) -> TableListing:
    """List the files in a table's directory; several directories are listed in parallel.

    Raise ``InvalidRequestError`` if the directory has a Paimon table, too.
    """
    found, waiting = TableListing(), [places.root]
    names = {each.name for spec in metadata.partition_specs for each in spec.fields}
    partitions = tuple(f"{name}=" for name in names if name.startswith(_HIDDEN))
    while waiting:
        window, waiting = waiting[-_AT_A_TIME:], waiting[:-_AT_A_TIME]
        listed = in_parallel(places.storage.list, window)
        for directory, children in zip(window, listed, strict=True):
            if directory == places.root:
                _refuse_paimon(places, children)
            elif _is_table(places.storage, children):
                found.tables.append(directory)
                continue
            for each in children:
                is_hidden = each.name.startswith(_HIDDEN)
                if each.is_directory and (not is_hidden or each.name.startswith(partitions)):
                    waiting.append(each.path)
                elif not each.is_directory and not is_hidden:
                    found.files.append(each)
    return found


def _refuse_paimon(places: FilePlaces, children: Sequence[FileInfo]) -> None:
    """Raise ``InvalidRequestError`` if the table's own directory has a Paimon table, too.

    The metadata of the Iceberg table names none of the files that the Paimon table needs.
    """
    if (schema := _paimon_schema(places.storage, children)) is not None:
        raise InvalidRequestError(
            f"{places.uri} is also the directory of a Paimon table ({schema}), whose files would "
            "look like orphans, so no file was removed. If the Paimon table publishes this Iceberg "
            "metadata, remove the orphans of the Paimon table. Otherwise write the rows of one of "
            "the two tables to a new table in another directory"
        )


def _is_table(storage: Storage, children: Sequence[FileInfo]) -> bool:
    """Return True if a directory contains a table of Iceberg, Paimon, Delta Lake or Hudi."""
    directories = {each.name: each.path for each in children if each.is_directory}
    if directories.keys() & _SIGNS or _paimon_schema(storage, children) is not None:
        return True
    metadata = storage.list(directories[METADATA]) if METADATA in directories else ()
    return any(each.name == HINT or is_metadata_file(each.name) for each in metadata)


def _paimon_schema(storage: Storage, children: Sequence[FileInfo]) -> str | None:
    """Return the path of a Paimon schema file below a directory; None without such a file."""
    for each in children:
        if each.is_directory and each.name == "schema":
            files = storage.list(each.path)
            return next(
                (f"schema/{file.name}" for file in files if file.name.startswith("schema-")), None
            )
    return None
