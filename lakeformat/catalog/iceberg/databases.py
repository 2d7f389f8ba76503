# SPDX-License-Identifier: Apache-2.0
"""The databases of a catalog of Iceberg tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.names import TableName, parse_nested_name
from lakeformat.catalog.texts import require_texts
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
)
from lakeformat.types.closest import closest
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat.catalog.iceberg.drop_plan import IcebergDropPlan

__all__ = ["IcebergDatabases"]


class IcebergDatabases(ABC):
    """The methods of a catalog that list, create and drop databases."""

    def __init__(
        self, metastore: Metastore, location: str, environment: Environment = SYSTEM
    ) -> None:
        self._metastore = metastore
        self._location = location
        self._environment = environment

    @property
    def location(self) -> str:
        """The URI of the warehouse, or its name in a REST catalog."""
        return self._location

    @property
    def is_directory(self) -> bool:
        """True if databases and tables are directories of the warehouse, without a service."""
        return self._metastore.is_directory

    def require_exists(self) -> None:
        """Raise ``NotFoundError`` if the SQL database lacks the SQL tables of Iceberg catalogs.

        The same error is raised if these tables have only rows of other catalogs. Metastores other
        than a SQL database are not checked.
        """
        self._metastore.require_exists()

    def list_databases(self) -> list[str]:
        """Return the names of the databases; a nested database has its full name ``a.b``.

        A REST catalog returns only databases that are not nested.
        """
        return sorted(self._metastore.databases())

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database; a missing database raises ``NotFoundError``."""
        self._require_database(name)
        return self._metastore.database_properties(name)

    def create_database(
        self, name: str, *, exist_ok: bool = False, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database.

        If it exists, ``AlreadyExistsError`` is raised, or with ``exist_ok`` nothing changes. A
        catalog of directories cannot store ``properties`` and raises ``UnsupportedError``.
        """
        _check_database_name(name)
        if not self._metastore.make_database(name, require_texts("properties", properties)):
            if exist_ok:
                return
            raise AlreadyExistsError(f"database {name!r} exists: pass exist_ok=True to accept that")

    def plan_drop_database(
        self, name: str, *, cascade: bool = False, purge: bool = False
    ) -> list[IcebergDropPlan]:
        """Return the plan of ``drop_database`` for each table; nothing is changed.

        A missing database raises ``NotFoundError``. Without ``cascade`` a database with tables
        raises ``InvalidRequestError``. With ``cascade`` this error is raised if a database of a
        REST catalog has both tables and nested databases. A table that cannot be dropped raises a
        ``LakeError``.
        """
        tables = self.list_tables(name)
        if tables and not cascade:
            raise InvalidRequestError(
                f"database {name!r} in {self.location} has {counted(len(tables), 'table')}: "
                f"{_shown(tables)}. Drop its tables first, or pass cascade=True"
            )
        for table in tables:
            _refuse_dotted(name, table)
        if tables and (nested := self._metastore.nested_databases(name)):
            raise InvalidRequestError(
                f"database {name!r} and its tables were not dropped: it has "
                f"{counted(len(nested), 'nested database')}: {_shown(nested)}. Most REST services "
                "then refuse to drop the database. Drop the nested databases first. If you want "
                "to keep them, drop the tables one by one"
            )
        names = [str(TableName(name, table)) for table in tables]
        return [self.plan_drop_table(each, purge=purge) for each in names]

    def drop_database(
        self, name: str, *, cascade: bool = False, purge: bool = False, missing_ok: bool = False
    ) -> None:
        """Delete a database. With ``cascade`` its tables are dropped first.

        Without ``cascade`` a database with tables raises ``InvalidRequestError``. ``purge`` also
        deletes the files of the tables, as in ``drop_table``. All tables are checked before the
        first one is dropped. A missing database raises ``NotFoundError``, unless ``missing_ok`` is
        True.
        """
        _check_database_name(name)
        if missing_ok and not self._metastore.has_database(name):
            return
        for plan in self.plan_drop_database(name, cascade=cascade, purge=purge):
            self.drop_table(plan.table, purge=purge, missing_ok=True)
        self._metastore.remove_database(name)

    @abstractmethod
    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database; a missing database raises
        ``NotFoundError``.
        """

    @abstractmethod
    def drop_table(self, name: str, *, purge: bool = False, missing_ok: bool = False) -> None:
        """Remove a table from the catalog; ``purge`` also deletes its files.

        A missing table raises ``NotFoundError``, unless ``missing_ok`` is True.
        """

    @abstractmethod
    def plan_drop_table(self, name: str, *, purge: bool = False) -> IcebergDropPlan:
        """Return the effect that ``drop_table`` would have; nothing is changed.

        Raises the same errors as ``drop_table``.
        """

    def _stored_name(self, name: str) -> TableName:
        """Parse ``database.table``, and return it as the metastore stores and lists it."""
        return self._metastore.stored_name(parse_nested_name(name))

    def _require_database(self, name: str) -> None:
        _check_database_name(name)
        if not self._metastore.has_database(name):
            near, more = (
                closest(name, self._metastore.databases()),
                self._metastore.more_about_missing(),
            )
            raise NotFoundError(
                f"database {name!r} does not exist in {self.location}; create it with "
                f"create_database({name!r}){near}{more.removeprefix('.') if near else more}"
            )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _refuse_dotted(database: str, table: str) -> None:
    """Raise ``InvalidRequestError`` if the name of a listed table has a dot.

    ``database.table`` would then mean another table, in a nested database.
    """
    if "." not in table:
        return
    nested, _, inner = f"{database}.{table}".rpartition(".")
    raise InvalidRequestError(
        f"database {database!r} and its tables were not dropped: the name of its table {table!r} "
        f"has a dot, and for this library '{nested}.{inner}' is the table {inner!r} of the "
        f"database {nested!r}. Drop {table!r} with the program that created it, then drop the "
        "database again"
    )


def _check_database_name(name: object) -> None:
    if not isinstance(name, str) or not all(name.split(".")):
        raise InvalidRequestError(f"{name!r} is not the name of a database: write 'shop' or 'a.b'")
