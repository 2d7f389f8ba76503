# SPDX-License-Identifier: Apache-2.0
"""The public class of a catalog of Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from lakeformat.catalog.iceberg.created_format import (
    is_mixed,
    require_harmless,
    require_no_version_field,
)
from lakeformat.catalog.iceberg.databases import IcebergDatabases
from lakeformat.catalog.iceberg.metastore import Describe
from lakeformat.catalog.iceberg.pair_stores import (
    about_half_a_pair,
    base_store_of,
    stores_to_drop,
    without_change_stores,
)
from lakeformat.catalog.names import TableName, parse_nested_name
from lakeformat.catalog.texts import require_texts
from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.mixed.stores.mixed_hive import refuse_store_of_mixed_hive
from lakeformat.mixed.stores.properties import CHANGE_IDENTIFIER, TABLE_STORE, is_keyed_store
from lakeformat.tables.table import offer_arguments
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import require_list

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg.columns import Columns
    from lakeformat.catalog.iceberg.drop_plan import IcebergDropPlan
    from lakeformat.iceberg.commit.pointer import MetadataPointer
    from lakeformat.iceberg.table.system_table import IcebergSystemTable
    from lakeformat.mixed.adopt.adopt import AdoptReport
    from lakeformat.mixed.adopt.detach import DetachReport
    from lakeformat.mixed.table import MixedTable
    from lakeformat.mixed.table.system_table import MixedSystemTable
    from lakeformat.paimon.schema_changes.changes import SchemaChange

__all__ = ["IcebergCatalog"]


@offer_arguments
class IcebergCatalog(IcebergDatabases):
    """The databases, Iceberg tables and Mixed tables that one metastore lists."""

    format = "iceberg"
    table_class = IcebergTable

    def __repr__(self) -> str:
        return f"<IcebergCatalog {self.location}>"

    # ------------------------------------------------------------------ tables

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database; of a Mixed table only the base store.

        A missing database raises ``NotFoundError``.
        """
        self._require_database(database)
        found = self._metastore.tables(database)
        return sorted(without_change_stores(self._metastore, database, found))

    def table(self, name: str) -> IcebergTable | IcebergSystemTable | MixedTable | MixedSystemTable:
        """Open ``database.table``, its branch ``…$branch_dev``, or its system table ``…$files``.

        The name of the base store of a Mixed table opens both stores as one table. Each operation
        on the table asks the catalog for the current metadata file. A missing table raises
        ``NotFoundError``.
        """
        parsed = self._stored_name(name)
        try:
            found = self._open_any(parsed)
        except NotFoundError:
            self._require_table(parsed)
            raise
        return found if parsed.system_table is None else found.system_table(parsed.system_table)

    def create_table(
        self,
        name: str,
        schema: Columns,
        *,
        format: Literal["iceberg", "mixed"] = "iceberg",
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        format_version: int | None = None,
        exist_ok: bool = False,
    ) -> IcebergTable | MixedTable:
        """Create a table ``database.table`` and return it.

        If the table exists, ``AlreadyExistsError`` is raised, or with ``exist_ok`` the existing
        table is returned unchanged. A missing database raises ``NotFoundError``.

        ``partition_by`` lists columns and transforms such as ``day(ts)`` and ``bucket(16, id)``.
        ``sort_by`` lists columns and transforms, too, each optionally followed by ``desc`` or
        ``nulls last``. ``primary_key`` lists the identifier fields, whose values identify a row.
        ``options`` are table properties. ``format_version`` is 1, 2 or 3; default: 2.

        ``format="mixed"`` creates a Mixed table: a base store with this name, and a change store
        ``<name>_change_``; ``primary_key`` is then its key, and with ``exist_ok`` an
        existing table must be a Mixed table with this key.
        """
        from lakeformat.catalog.iceberg.columns import arrow_columns  # only a new table needs it
        from lakeformat.iceberg.create.new_table import new_table_metadata

        parsed = self._plain_name(name)
        self._require_database(parsed.database)
        columns, is_pair = arrow_columns(schema), is_mixed(format)
        if not is_pair:
            require_list("primary_key", primary_key, "['id']")
        require_list("partition_by", partition_by, "['day(ts)', 'bucket(16, id)']")
        require_list("sort_by", sort_by, "['id', 'ts desc']")
        properties = require_texts("options", options)
        require_harmless(properties)
        if comment is not None:
            properties["comment"] = comment

        def described(more: Mapping[str, str]) -> Describe:
            return lambda location: new_table_metadata(
                location,
                columns,
                identifier_fields=() if is_pair else primary_key,
                partitioned_by=partition_by,
                sorted_by=sort_by,
                properties={**properties, **more},
                format_version=format_version,
                environment=self._environment,
            )

        if is_pair:
            from lakeformat.catalog.iceberg.new_pair import make_pair, required_keys

            columns = required_keys(columns, primary_key)
            is_made = make_pair(self._metastore, parsed, primary_key, described)
        else:
            require_no_version_field(properties)
            is_made = self._metastore.make_table(parsed, described({}))
        if not is_made and not exist_ok:
            raise AlreadyExistsError(
                f"table {name!r} exists in {self.location}: pass exist_ok=True to open it"
            )
        found = self._open_any(parsed)
        if is_pair:
            from lakeformat.catalog.iceberg.new_pair import require_same_key
            from lakeformat.mixed.stores.properties import VERSION_FIELD

            require_same_key(found, name, primary_key, properties.get(VERSION_FIELD))
        return found

    def alter_table(self, name: str, *changes: SchemaChange) -> IcebergTable | MixedTable:
        """Change columns and properties of ``database.table``, and return the table. Either all
        changes are made or none.

        Make the changes with ``add_column``, ``drop_column``, ``set_option`` and the like. A new
        column has nulls in existing rows. A type can change from INT to BIGINT, from FLOAT to
        DOUBLE, or from DECIMAL to a DECIMAL with a higher precision and the same scale. No column
        can become NOT NULL.

        The type of a column of a partition spec cannot change. A column of a partition spec, a sort
        order or the identifier fields cannot be dropped. Both rules hold for earlier specs and
        sort orders, too. A change that the table refuses raises ``InvalidRequestError``.

        Both stores of a Mixed table are altered. If a call was interrupted between the two stores,
        a repeated call completes it.
        """
        from lakeformat.catalog.iceberg.alter import alter_opened, alteration_of

        parsed = self._plain_name(name)
        alteration = alteration_of(name, changes)
        self._require_table(parsed)
        found = self._open_any(parsed)
        if isinstance(found, IcebergTable):
            self._require_no_store(parsed)
        alter_opened(found, alteration)
        return found

    def drop_table(self, name: str, *, purge: bool = False, missing_ok: bool = False) -> None:
        """Remove a table from the catalog; its files are kept.

        ``purge`` also deletes the files. A catalog of directories deletes the directory of the
        table, and requires ``purge``. A REST service deletes the files itself. In any other catalog
        this library deletes the files that the metadata names, if they are below the table or in a
        directory of ``external-roots``.

        Stop all writers first. Both stores of a Mixed table are dropped. A missing table raises
        ``NotFoundError``, unless ``missing_ok`` is True.
        """
        parsed = self._plain_name(name)
        try:
            self._require_table(parsed)
        except NotFoundError:
            if missing_ok:
                return
            raise
        stores = stores_to_drop(self._metastore, parsed)
        from lakeformat.catalog.iceberg.drop_stores import drop_stores

        drop_stores(self._metastore, stores, self._handle, purge=purge)

    def plan_drop_table(self, name: str, *, purge: bool = False) -> IcebergDropPlan:
        """Return the effect that ``drop_table`` would have; nothing is changed.

        Raises the same errors as ``drop_table``.
        """
        from lakeformat.catalog.iceberg.drop_stores import plan_drop_stores

        parsed = self._plain_name(name)
        self._require_table(parsed)
        stores = stores_to_drop(self._metastore, parsed)
        return plan_drop_stores(self._metastore, stores, self._handle, purge=purge)

    def drop_new_table(self, name: str) -> bool:
        """Remove a table that has no snapshot, and return True.

        Any other table is kept, and False is returned. A catalog of directories also keeps a table
        with files other than metadata. A missing table raises ``NotFoundError``. Danger: a table
        may be removed although another program writes the first rows to it during this call.
        """
        parsed = self._plain_name(name)
        stores = stores_to_drop(self._metastore, parsed)
        if any(self._open(store).latest_snapshot() is not None for store in stores):
            return False
        if any(map(self._metastore.has_other_files, stores)):
            return False
        return all(map(self._metastore.remove_new_table, reversed(stores)))  # change store first

    def rename_table(self, old: str, new: str) -> IcebergTable | MixedTable:
        """Rename a table, in the same database or into another one, and return it; its files are
        not moved.

        A new name that exists raises ``AlreadyExistsError``; a missing table or database raises
        ``NotFoundError``. A metastore that cannot rename tables raises ``UnsupportedError``. Both
        stores of a Mixed table are renamed; a repeated call completes an interrupted one.
        """
        source, target = self._plain_name(old), self._plain_name(new)
        self._require_table(source)
        rename = self._metastore.rename_table
        if CHANGE_IDENTIFIER in self._open(source).properties:
            from lakeformat.catalog.iceberg.rename_pair import rename_pair

            rename = partial(rename_pair, self._metastore, environment=self._environment)
        else:
            self._require_no_store(source)
        self._require_database(target.database)
        if target.table in self._metastore.tables(target.database):
            raise AlreadyExistsError(
                f"cannot rename {old!r}: table {new!r} exists in {self.location}. Choose another "
                "name"
            )
        rename(source, target)
        return self._open_any(target)

    def adopt_table(
        self, name: str, *, primary_key: Sequence[str] | None = None, dry_run: bool = False
    ) -> AdoptReport:
        """Make an Iceberg table ``database.table`` a Mixed table; no data file is changed.

        ``primary_key`` lists the key columns, which become required columns; by default they are
        the identifier fields of the table. The keys of all rows are read first. A null in a key,
        and two rows with the same key in a partition, raise ``InvalidRequestError``, and nothing is
        changed. If another program changes the table meanwhile, ``CommitConflictError`` is raised.

        The table gets a change store ``<name>_change_``. Repeat an interrupted call. A Mixed table
        with this key is not changed; one with another key raises ``AlreadyExistsError``.
        ``dry_run`` checks everything and changes nothing.
        """
        from lakeformat.catalog.iceberg.adopt_pair import adopt_pair

        parsed = self._plain_name(name)
        self._require_table(parsed)
        report = adopt_pair(
            self._metastore, parsed, primary_key, self._environment, dry_run=dry_run
        )
        if report.rows is None:
            self._open_any(parsed)  # raises for half a pair
        return report

    def detach_table(
        self,
        name: str,
        *,
        merge: bool = False,
        abandon_changes: bool = False,
        dry_run: bool = False,
    ) -> DetachReport:
        """Make a Mixed table an ordinary Iceberg table with the same rows, and drop its change
        store; no data file of the base store is changed.

        While changes are not merged, ``InvalidRequestError`` is raised; ``merge=True`` merges them
        first, by ``compact(strategy="full")``. The same error is raised while a batch is open or a
        consumer exists. Columns and properties that ``adopt_table`` changed are restored. Retries
        of earlier writes are no longer recognised, so let writers finish first.

        ``abandon_changes=True`` is only for a table whose change store does not exist any more. The
        rows of the base store remain; changes that were not merged are lost.

        Repeat an interrupted call. ``dry_run`` counts the files to delete, and changes nothing.
        """
        from lakeformat.catalog.iceberg.detach_pair import detach_base, detach_pair

        parsed = self._plain_name(name)
        self._require_table(parsed)
        if abandon_changes:
            if merge:
                raise InvalidRequestError(
                    f"table '{parsed}': merge=True (--merge) and abandon_changes "
                    "(--abandon-changes) exclude each other. If the change store is lost, leave "
                    "out merge=True, because its changes cannot be merged; otherwise leave out "
                    "abandon_changes"
                )
            return detach_base(self._metastore, parsed, self._handle, dry_run=dry_run)
        self._open_any(parsed)  # raises for half a pair, and for an unfinished clone
        return detach_pair(self._metastore, parsed, self._handle, merge=merge, dry_run=dry_run)

    def _open(self, name: TableName) -> IcebergTable:
        found = IcebergTable(self._handle(name))
        found.snapshots()  # raises if the table or the branch does not exist
        refuse_store_of_mixed_hive(found.properties, found.location)
        return found

    def _open_any(self, name: TableName) -> IcebergTable | MixedTable:
        """Open an Iceberg table, or the Mixed table whose base store has this name."""
        found = self._open(name)
        if TABLE_STORE not in found.properties:
            return found
        from lakeformat.mixed.table import open_stored  # a plain Iceberg table does not need it

        def beside(table: str, database: str) -> MetadataPointer:
            change = self._metastore.beside(name, table, database)
            return self._metastore.pointer_beside(change, name)

        return open_stored(self._handle(name), beside)

    def _require_no_store(self, name: TableName) -> None:
        """Raise ``UnsupportedError`` if ``name`` is one store of a Mixed table, because a store
        cannot be altered or renamed alone.
        """
        properties = self._open(name).properties
        if TABLE_STORE not in properties or not is_keyed_store(properties):
            return
        base = base_store_of(self._metastore, name)
        way = "use the name of the base store" if base is None else f"use the name '{base}'"
        raise UnsupportedError(
            f"table '{name}' is the {properties[TABLE_STORE]} store of a Mixed table, and cannot "
            f"be altered or renamed alone: {way}, to alter or rename both stores"
        )

    def _plain_name(self, name: str) -> TableName:
        parsed = parse_nested_name(name)
        if str(parsed) != name:
            raise InvalidRequestError(
                f"{name!r} is a branch or a system table: name the table itself, 'database.table'"
            )
        return self._metastore.stored_name(parsed)

    def _handle(self, name: TableName) -> TableHandle:
        return TableHandle(self._metastore.pointer(name), name.branch, self._environment)

    def location_of(self, name: str) -> str:
        """Return the URI of ``database.table``.

        For a missing table, return ``<catalog.location>/<database>/<table>``.
        """
        parsed = self._plain_name(name)
        try:
            return self._open(parsed).location
        except NotFoundError:
            return f"{self.location}/{parsed.database}/{parsed.table}"

    def _likely_tables(self, database: str) -> set[str]:
        try:
            return {*self.list_tables(database)}
        except NotFoundError:
            return set()

    # ------------------------------------------------------------------ names

    def _require_table(self, name: TableName) -> None:
        self._require_database(name.database)
        tables = self._metastore.tables(name.database)
        if name.table not in tables:
            near = closest(name.table, tables, inside=f"{name.database}.")
            raise NotFoundError(
                f"table '{name}' does not exist in {self.location}: list_tables({name.database!r}) "
                f"lists the tables there{about_half_a_pair(self._metastore, name, tables) or near}"
            )
