# SPDX-License-Identifier: Apache-2.0
"""Finds the format of the table in a directory that has no Paimon schema.

A directory with a Paimon schema is never examined. So opening a Paimon table costs no further
requests, and a Paimon table that is published as Iceberg metadata does not count as an Iceberg
table.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from lakeformat.errors import (
    AccessDeniedError,
    LakeError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import table_exists
from lakeformat.storage import Storage

__all__ = ["SIGNS_OF_ANOTHER_KIND", "explain_missing", "is_iceberg", "sign_of_another_kind"]

_ICEBERG_METADATA = "metadata"
_ICEBERG_ENDS = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True, slots=True)
class _Format:
    """A table format other than Paimon's."""

    name: str
    sign: str
    advice: str
    """The end of a message: how to read such a table. ``{uri}`` is replaced by the URI of the
    table.
    """


def _other(name: str, sign: str, reader: str) -> _Format:
    advice = (
        f"This version does not open it. Read it with {reader}; to work on its rows here, write "
        "them to a new table (catalog.create_table and table.write)"
    )
    return _Format(name, sign, advice)


_ICEBERG = _Format(
    "an Iceberg table",
    "metadata/version-hint.text",
    "This catalog holds Paimon tables only. Open the table by its directory: "
    "lake.open_table({uri!r}), or `lake scan {word}`; or by its name in a catalog of Iceberg "
    "tables: open_catalog(…, format='iceberg')",
)
_FORMATS = (
    _ICEBERG,
    _other("a Delta table", "_delta_log", "the deltalake package or Spark"),
    _other("a Hudi table", ".hoodie", "Spark with Hudi's bundle"),
)
SIGNS_OF_ANOTHER_KIND = tuple(each.sign for each in _FORMATS)

_SEARCHED = 50
"""The largest number of directories on each level that are searched for tables to name in a
message.
"""
_SHOWN = 10
_MIGRATED = (".parquet", ".orc")
_WRITTEN = (".csv", ".json")


def sign_of_another_kind(storage: Storage, directory: str) -> str | None:
    """Return a path below ``directory`` that proves an Iceberg, Delta or Hudi table there.

    Return None without such a table. Any Iceberg metadata file is enough, because many catalogs
    write no version hint.
    """
    found = _other_format(storage, directory)
    return None if found is None else found[1]


def is_iceberg(storage: Storage, root: str) -> bool:
    """Return True if a directory has an Iceberg table and no Paimon table.

    Return False if this user lacks the permission to read the directory. If the storage does not
    answer, its error is raised.
    """
    try:
        if table_exists(storage, TableLayout(root)):
            return False
        found = _other_format(storage, root)
    except LakeError as error:
        if isinstance(error, UnavailableError) and not isinstance(error, AccessDeniedError):
            raise
        return False
    return found is not None and found[0] is _ICEBERG


def explain_missing(storage: Storage, root: str, missing: NotFoundError) -> LakeError:
    """Return a more helpful error than ``missing`` for a directory without a Paimon table.

    The error names the table of another format, the tables below the directory, or the command that
    makes a table of plain files. If none of these is found, ``missing`` is returned.
    """
    try:
        # The usual cases: the place is empty, or a Paimon table lacks this branch.
        if not storage.list(root) or table_exists(storage, TableLayout(root)):
            return missing
        if (found := _other_format(storage, root)) is not None:
            kind, sign = found
            uri = storage.uri(root)
            advice = kind.advice.format(uri=uri, word=shlex.quote(uri))
            return UnsupportedError(f"{uri} is {kind.name} ({sign}). {advice}")
        hint = _hint_for_tables(storage, root) or _hint_for_plain_files(storage, root)
    except LakeError:
        return missing
    return missing if hint is None else NotFoundError(f"{missing}. {hint}")


def _other_format(storage: Storage, directory: str) -> tuple[_Format, str] | None:
    for kind in _FORMATS:
        place = f"{directory}/{kind.sign}"
        if storage.exists(place) or storage.directory_exists(place):
            return kind, kind.sign
    metadata = f"{directory}/{_ICEBERG_METADATA}"
    if storage.directory_exists(metadata):
        for info in storage.list(metadata):
            if info.name.endswith(_ICEBERG_ENDS):
                return _ICEBERG, f"{_ICEBERG_METADATA}/{info.name}"
    return None


def _hint_for_tables(storage: Storage, root: str) -> str | None:
    """Return a sentence that names the tables below the directory of a database or warehouse.

    Return None if the first ``_SEARCHED`` directories have no table.
    """
    below = [info.path for info in storage.list(root) if info.is_directory][:_SEARCHED]
    kind, tables = "a database", [path for path in below if _is_table(storage, path)]
    if not tables:
        kind = "a warehouse"
        inner = [info.path for path in below for info in storage.list(path) if info.is_directory]
        tables = [path for path in inner[:_SEARCHED] if _is_table(storage, path)]
    if not tables:
        return None
    names = [path.removeprefix(f"{root}/") for path in tables[:_SHOWN]]
    more = ", …" if len(tables) > _SHOWN else ""
    noun = "table" if len(names) == 1 else "tables"
    return (
        f"It is the directory of {kind} with the {noun} {', '.join(names)}{more}: name a table, "
        f"such as {storage.uri(tables[0])}"
    )


def _is_table(storage: Storage, directory: str) -> bool:
    return table_exists(storage, TableLayout(directory)) or is_iceberg(storage, directory)


def _hint_for_plain_files(storage: Storage, root: str) -> str | None:
    """Return a sentence with the command that makes a table of the plain files below ``root``; None
    if there are no files.
    """
    name = _first_data_file(storage, root)
    if name is None:
        return None
    if name.endswith(_MIGRATED):
        return (
            f"It holds plain files such as {name}: create a table of them with "
            f"`lake migrate {shlex.quote(storage.uri(root))} DATABASE.TABLE --copy`"
        )
    return (
        f"It holds plain files such as {name}: create a table with `lake create-table`, then add "
        "their rows with `lake write DATABASE.TABLE FILE`. Parquet and ORC files become a table "
        "with `lake migrate`"
    )


def _first_data_file(storage: Storage, directory: str) -> str | None:
    """Return the name of one data file in a directory; None if no file is found.

    The file may be in a partition directory; at each level only the first one is searched.
    """
    partition = None
    for info in storage.list(directory):
        if info.is_directory:
            partition = partition or (info.path if "=" in info.name else None)
        elif info.name.endswith(_MIGRATED + _WRITTEN) and not info.name.startswith((".", "_")):
            return info.name
    return None if partition is None else _first_data_file(storage, partition)
