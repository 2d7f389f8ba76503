"""Files without a table: of a drop that was killed, or of a writer who outlived his table."""

from __future__ import annotations

import re
import uuid

from lakeformat.catalog.names import TableName
from lakeformat.errors import AlreadyExistsError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import table_exists
from lakeformat.storage import Storage

__all__ = [
    "SIGNS_OF_ANOTHER_KIND",
    "dropped_sibling",
    "has_leftovers",
    "refuse_another_kind",
    "refuse_leftovers",
    "remove_dropped",
    "sign_of_another_kind",
]

_OF_A_TABLE = re.compile(
    r"snapshot|schema|manifest|changelog|index|statistics|tag|branch|bucket-.+|[^.=][^=]*=.*"
)
_DROPPED = ".dropped-"
SIGNS_OF_ANOTHER_KIND = ("metadata/version-hint.text", "_delta_log", ".hoodie")
_ICEBERG_METADATA = "metadata"
_ICEBERG_ENDS = (".metadata.json", ".metadata.json.gz")


def dropped_sibling(directory: str) -> str:
    """Where a table goes before its files are removed: no name of a table begins with a dot."""
    return f"{directory.rpartition('/')[0]}/{_DROPPED}{uuid.uuid4()}"


def remove_dropped(storage: Storage, directory: str) -> list[str]:
    """Remove what killed drops have left in a database's directory; their hidden names."""
    found = [
        info
        for info in storage.list(directory)
        if info.is_directory and info.name.startswith(_DROPPED)
    ]
    for info in found:
        storage.delete_directory(info.path)
    return [info.name for info in found]


def has_leftovers(storage: Storage, layout: TableLayout) -> bool:
    """Whether files of a table, but no schema, are in a place, and no table of another kind."""
    return (
        not table_exists(storage, layout)
        and _leftover(storage, layout) is not None
        and sign_of_another_kind(storage, layout.root) is None
    )


def refuse_leftovers(storage: Storage, layout: TableLayout, name: TableName) -> None:
    """A table made on top of another one's files would show that one's rows as its own."""
    refuse_another_kind(storage, layout, str(name))
    found = _leftover(storage, layout)
    if found is not None and not table_exists(storage, layout):
        raise AlreadyExistsError(
            f"files of another table, which has no schema any more, are where '{name}' would be: "
            f"{storage.uri(found)}. Remove them with drop_table('{name}'), or choose another name"
        )


def refuse_another_kind(storage: Storage, layout: TableLayout, name: str) -> None:
    """Dropping a table made in the place of an Iceberg table would remove that one's rows."""
    if not storage.list(layout.root) or table_exists(storage, layout):
        return
    if (sign := sign_of_another_kind(storage, layout.root)) is not None:
        raise AlreadyExistsError(
            f"{storage.uri(layout.root)} holds a table of another kind ({sign}), where '{name}' "
            "would be: choose another name"
        )


def sign_of_another_kind(storage: Storage, directory: str) -> str | None:
    """The file or directory by which an Iceberg, Delta or Hudi table is known; None if it is none.

    Only a catalog of directories leaves Iceberg's hint; others keep elsewhere which file is newest.
    """
    for path in SIGNS_OF_ANOTHER_KIND:
        place = f"{directory}/{path}"
        if storage.exists(place) or storage.directory_exists(place):
            return path
    metadata = f"{directory}/{_ICEBERG_METADATA}"
    if storage.directory_exists(metadata):
        for info in storage.list(metadata):
            if info.name.endswith(_ICEBERG_ENDS):
                return f"{_ICEBERG_METADATA}/{info.name}"
    return None


def _leftover(storage: Storage, layout: TableLayout) -> str | None:
    for info in storage.list(layout.root):
        if info.is_directory and _OF_A_TABLE.fullmatch(info.name):
            found = _first_file(storage, info.path)
            if found is not None:
                return found
    return None


def _first_file(storage: Storage, directory: str) -> str | None:
    """A file below a directory, but for those that a crash may leave and every reader ignores."""
    for info in storage.list(directory):
        if info.name.startswith("."):
            continue
        found = _first_file(storage, info.path) if info.is_directory else info.path
        if found is not None:
            return found
    return None
