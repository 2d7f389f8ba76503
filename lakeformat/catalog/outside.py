# SPDX-License-Identifier: Apache-2.0
"""Finds the external paths that schemas name, and refuses paths where other tables could have
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakeformat.errors import InvalidRequestError, LakeError, UnavailableError
from lakeformat.paimon.layout import DATABASE_SUFFIX, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema_changes.changes import SchemaChange, SetOption
from lakeformat.storage import Storage
from lakeformat.storage.links import within
from lakeformat.storage.location import Location, location_of

__all__ = ["external_paths_in", "external_paths_of", "location_in", "refuse_places_of_tables"]


def location_in(storage: Storage, path: str) -> Location:
    """Return the location of a path in a storage, with symbolic links resolved."""
    return location_of(storage.uri(path), is_literal=False).real()


def external_paths_of(storage: Storage, layout: TableLayout) -> list[str]:
    """Return the URIs in ``data-file.external-paths`` of all schemas of all branches."""
    storage = within(storage, layout.root)
    found: dict[str, None] = {}
    for branch in (layout, *_other_branches(storage, layout)):
        for schema_id in schema_ids(storage, branch):
            found |= dict.fromkeys(_named(storage, branch, schema_id))
    return [*found]


def external_paths_in(changes: Iterable[SchemaChange]) -> list[str]:
    """Return the URIs that schema changes set as ``data-file.external-paths``."""
    option = TableOptions.data_file_external_paths
    return [
        address
        for change in changes
        if isinstance(change, SetOption) and change.key == option.key
        for address in option.parse(change.value)
    ]


def refuse_places_of_tables(
    table: str, address: str, warehouse: Location, databases: Iterable[tuple[str, Location]]
) -> None:
    """Raise ``InvalidRequestError`` if other tables could have files in the external path
    ``address`` of ``table``.

    A drop of ``table`` could delete these files. The path must not contain the warehouse, lie in a
    directory ``<name>.db`` of the warehouse, or overlap with the location of a database. Any other
    directory below the warehouse is allowed. ``databases`` has the name and the location of each
    database.
    """
    found = location_of(address).real()
    if found.holds(warehouse):
        raise _refusal(table, address, f"holds the warehouse {warehouse}")
    if warehouse.holds(found):
        first = found.segments[len(warehouse.segments)]
        if first.endswith(DATABASE_SUFFIX):
            name = first.removesuffix(DATABASE_SUFFIX)
            raise _refusal(table, address, f"lies in the directory of database {name!r}")
    for name, directory in databases:
        if directory.overlaps(found):
            raise _refusal(
                table, address, f"and the directory of database {name!r}, {directory}, overlap"
            )


def _refusal(table: str, address: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the external path {address} of table {table!r} {what}: a drop or an orphan removal of "
        "this table could delete files of other tables there. Nothing was changed. Choose a "
        "directory that no other table uses. If the table has this path already, drop the table by "
        f"hand: delete only the data files of this table from the path (`lake files {table}` lists "
        "those of the newest snapshot), then delete the directory of the table. In a jdbc catalog, "
        "then drop the table, to remove its row from the SQL database"
    )


def _other_branches(storage: Storage, layout: TableLayout) -> Iterator[TableLayout]:
    for branch in branches(storage, layout):
        yield layout.on_branch(branch.name)


def _named(storage: Storage, layout: TableLayout, schema_id: int) -> tuple[str, ...]:
    try:
        options = read_schema(storage, layout, schema_id).table_options
        return options.data_file_external_paths
    except UnavailableError:
        raise
    except LakeError as error:
        from lakeformat.types.sentence import sentence  # only for a message

        raise type(error)(
            f"{sentence(error)} The schema may name external paths, which a drop must know. "
            "Nothing was deleted"
        ) from error
