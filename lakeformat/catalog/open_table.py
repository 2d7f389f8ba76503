# SPDX-License-Identifier: Apache-2.0
"""Opens a table by its path or URI, without a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.outside import external_paths_in
from lakeformat.catalog.table_format import explain_missing, is_iceberg
from lakeformat.catalog.texts import require_options
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import InvalidRequestError, LakeError, NotFoundError, UnsupportedError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.options.commit import PUBLISHED_PREFIX
from lakeformat.paimon.schema_changes.changes import SchemaChange
from lakeformat.paimon.table import Table, load_table
from lakeformat.storage import ExternalRoots, Storage, open_storage
from lakeformat.storage.links import is_link, refuse_link, within
from lakeformat.tables.position import MAIN_BRANCH
from lakeformat.tables.table import offering_arguments

if TYPE_CHECKING:
    from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
    from lakeformat.iceberg.table import IcebergTable
    from lakeformat.mixed.table import MixedTable

__all__ = ["alter_table_at", "open_table"]

_METADATA = "/metadata"
_METADATA_FILE = (".metadata.json", ".metadata.json.gz")


@offering_arguments
def open_table(
    location: str,
    *,
    options: Mapping[str, str] | None = None,
    branch: str = MAIN_BRANCH,
    environment: Environment = SYSTEM,
    external_roots: Iterable[str] = (),
) -> Table | IcebergTable | MixedTable:
    """Open the table at a path or URI, without a catalog.

    The files in the directory decide the format. In the directory of an Iceberg table, the newest
    metadata file is read; ``location`` may also be a metadata file. The directory of the base store
    of a Mixed table opens both stores as one table. A directory without a table raises
    ``NotFoundError``; a Delta or Hudi table raises ``UnsupportedError``.

    ``options`` are options of the storage, and ``metadata.iceberg.*`` for the catalogs in which a
    Paimon table is published.

    ``external_roots`` lists directories outside of the table where its files may be; by default
    none. Files in any other directory are not read and not deleted.
    """
    said = require_options(options or None)  # [] and an empty text are no options
    published = {key: said[key] for key in said if str(key).startswith(PUBLISHED_PREFIX)}
    of_storage = {key: said[key] for key in said if key not in published}
    storage, root = open_storage(location, of_storage)
    roots = ExternalRoots.of(external_roots)
    directory, _, name = root.rpartition("/")
    if name.endswith(_METADATA_FILE) and directory.endswith(_METADATA):
        table = directory.removesuffix(_METADATA)
        from lakeformat.iceberg.table import load_iceberg_table  # not needed by a Paimon table

        there = within(storage, table)
        return load_iceberg_table(there, table, roots, branch, root, environment)
    try:
        publication = CatalogOptions(published).publication()
        return load_table(storage, TableLayout(root, branch), environment, roots, publication)
    except NotFoundError as missing:
        there = within(storage, root)
        if is_iceberg(there, root):
            return _iceberg_table(storage, root, roots, branch, environment)
        raise _explained(storage, root, missing) from None


def _explained(storage: Storage, root: str, missing: NotFoundError) -> LakeError:
    """Return a more helpful error than ``missing`` for a directory without a table."""
    from lakeformat.catalog.iceberg.pair_stores import CHANGE_SUFFIX

    change = f"{root}{CHANGE_SUFFIX}"
    if _is_change_store(within(storage, change), change):
        return NotFoundError(
            f"{missing}. The change store {storage.uri(change)} is there, so a process died while "
            "it created or dropped this Mixed table. Create it again in its catalog, which "
            "completes the pair, or delete the directory of the change store"
        )
    return explain_missing(within(storage, root), root, missing)


def _is_change_store(storage: Storage, root: str) -> bool:
    from lakeformat.iceberg.metadata.metadata_file import find_metadata_file, read_metadata_file
    from lakeformat.mixed.stores.properties import CHANGE, TABLE_STORE

    with suppress(LakeError):
        metadata = read_metadata_file(storage, find_metadata_file(storage, root))
        return metadata.properties.get(TABLE_STORE) == CHANGE
    return False


def _iceberg_table(
    storage: Storage, root: str, roots: ExternalRoots, branch: str, environment: Environment
) -> IcebergTable | MixedTable:
    """Open the Iceberg table in a directory, or the Mixed table whose base store is there."""
    # A Paimon table does not need these modules.
    from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
    from lakeformat.iceberg.commit.handle import TableHandle
    from lakeformat.iceberg.table import load_iceberg_table
    from lakeformat.mixed.stores.mixed_hive import refuse_store_of_mixed_hive
    from lakeformat.mixed.stores.properties import TABLE_STORE

    def pointer(directory: str) -> DirectoryPointer:
        return DirectoryPointer(within(storage, directory), directory, roots, environment)

    handle = TableHandle(pointer(root), branch, environment)
    properties = handle.load().metadata.properties
    refuse_store_of_mixed_hive(properties, handle.uri)
    if TABLE_STORE not in properties:
        return load_iceberg_table(within(storage, root), root, roots, branch, None, environment)
    from lakeformat.mixed.table import open_stored  # not needed by a plain Iceberg table

    parent = root.rpartition("/")[0]

    def beside(name: str, database: str) -> DirectoryPointer:
        for each in (f"{parent}/{name}", root):
            if is_link(storage, each):
                refuse_link(parent, each)
        _require_not_renamed(storage, root, name, database)
        return pointer(f"{parent}/{name}")

    return open_stored(handle, beside)


def _require_not_renamed(storage: Storage, root: str, change: str, database: str) -> None:
    """Raise ``UnsupportedError`` if a base store names another change store than the one beside it.

    The store beside it is the directory ``<root>_change_``. A catalog renames tables without their
    directories, so either of these two change stores may belong to the table.
    """
    from lakeformat.catalog.iceberg.pair_stores import CHANGE_SUFFIX

    usual = f"{root}{CHANGE_SUFFIX}"
    if usual.endswith(f"/{change}") or not is_iceberg(within(storage, usual), usual):
        return
    name = f"{database}.{change.removesuffix(CHANGE_SUFFIX)}".removeprefix(".")
    raise UnsupportedError(
        f"{storage.uri(root)} is the directory of a Mixed table that a catalog has renamed: its "
        f"base store names the change store {change!r}, but the change store beside it is "
        f"{storage.uri(usual)}. Only the catalog knows which of the two belongs to the table. Open "
        f"the table by its name in the catalog, {name!r}"
    )


def alter_table_at(
    location: str,
    changes: Sequence[SchemaChange],
    *,
    options: Mapping[str, str] | None = None,
    branch: str = MAIN_BRANCH,
    environment: Environment = SYSTEM,
    external_roots: Iterable[str] = (),
) -> None:
    """Change the schema of a Paimon, Iceberg or Mixed table at a path or URI.

    No lock of a catalog is taken. Setting ``data-file.external-paths`` raises
    ``InvalidRequestError``.
    """
    from lakeformat.catalog.altered_schema import alter_schema_of
    from lakeformat.publish import IcebergPublication

    if external_paths_in(changes):
        raise InvalidRequestError(
            f"cannot set external paths of {location}: the table was opened by its directory, and "
            "only a catalog can check that no other table uses these paths. Open the table by its "
            "name 'database.table' in its catalog (`lake --warehouse`)"
        )
    storage, root = open_storage(location, options)
    layout, there = TableLayout(root, branch), within(storage, root)
    try:
        alter_schema_of(there, layout, changes, environment, IcebergPublication())
    except NotFoundError:
        if not is_iceberg(there, root):
            raise
        from lakeformat.catalog.iceberg.alter import alter_opened, alteration_of

        roots = ExternalRoots.of(external_roots)
        found = _iceberg_table(storage, root, roots, branch, environment)
        alter_opened(found, alteration_of(location, changes))
