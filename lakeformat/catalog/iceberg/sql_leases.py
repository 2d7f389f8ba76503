# SPDX-License-Identifier: Apache-2.0
"""The leases of Mixed tables as rows in the SQL database of an Iceberg catalog.

A table has one row, found by the uuid of its base store, so a renamed table keeps its lease. The
next lease is stored only if the row still has the previous number, or does not exist yet. So only
one of two holders can take the next lease.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    MetaData,
    String,
    Table,
    and_,
    delete,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from lakeformat.errors import CorruptTableError, LockUnavailableError, UnavailableError
from lakeformat.storage.sql.database import SqlDatabase
from lakeformat.storage.sql.failure import is_unique_violation
from lakeformat.tables.lease import StoredLease
from lakeformat.types.sentence import sentence

__all__ = ["SqlLeases"]

_ROWS = MetaData()
_LEASES = Table(
    "lake_leases",
    _ROWS,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_uuid", String(255), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("owner", String(255), nullable=False),
    Column("expires_millis", BigInteger, nullable=False),
)
_LARGEST = 2**63 - 1


class SqlLeases:
    """The leases of one table."""

    def __init__(self, database: SqlDatabase, catalog: str, table_uuid: str) -> None:
        self._database = database
        self._catalog = catalog
        self._table_uuid = table_uuid

    def newest(self) -> StoredLease | None:
        """Return the lease in the row; None if there is no row.

        Raise ``CorruptTableError`` if the row has values that this library does not write.
        """
        with self._database.reading(f"read {self._name}") as connection:
            if not inspect(connection).has_table(_LEASES.name):
                return None
            columns = (_LEASES.c.number, _LEASES.c.owner, _LEASES.c.expires_millis)
            found = connection.execute(select(*columns).where(self._here)).first()
        if found is None:
            return None
        try:
            number, expires_millis = int(found[0]), int(found[2])
        except (TypeError, ValueError):
            raise self._unusable(*found) from None
        if number >= _LARGEST:
            raise self._unusable(*found)
        return StoredLease(number, str(found[1]), expires_millis)

    def take(self, lease: StoredLease) -> bool:
        """Store ``lease`` and return True if its number follows the number in the row, or if there
        is no row.

        Return False if another holder was first. Raise ``LockUnavailableError`` if the answer of
        the SQL database is lost.
        """
        is_sent = False
        try:
            with self._database.writing(f"take {self._name}") as connection:
                _ROWS.create_all(connection)
                values = _values(lease)
                before = and_(self._here, _LEASES.c.number == lease.number - 1)
                done = connection.execute(update(_LEASES).where(before).values(**values))
                is_sent = True
                if done.rowcount == 1:
                    return True
                place = {"catalog_name": self._catalog, "table_uuid": self._table_uuid}
                if connection.execute(select(_LEASES.c.number).where(self._here)).first():
                    return False
                try:
                    connection.execute(insert(_LEASES).values(**place, **values))
                except IntegrityError as error:
                    if is_unique_violation(error):
                        return False  # another holder added the row first
                    raise
        except UnavailableError as error:
            if not is_sent:
                raise
            raise LockUnavailableError(
                f"{sentence(str(error))} No batch began, and it is unknown if {self._name} was "
                "taken: retry. If it was taken, retries fail for a minute, until the lease is stale"
            ) from None
        return True

    def renew(self, lease: StoredLease) -> bool:
        """Store the new end of ``lease``, and return True.

        Return False if the row no longer has the number and the owner of ``lease``.
        """
        mine = and_(self._here, _LEASES.c.number == lease.number, _LEASES.c.owner == lease.owner)
        with self._database.writing(f"renew {self._name}") as connection:
            done = connection.execute(update(_LEASES).where(mine).values(**_values(lease)))
        return done.rowcount == 1

    def forget(self) -> None:
        """Delete the row of a dropped table; a missing row is no error."""
        with self._database.writing(f"delete {self._name}") as connection:
            if inspect(connection).has_table(_LEASES.name):
                connection.execute(delete(_LEASES).where(self._here))

    def place(self, number: int) -> str:
        """Return the row and the SQL database of a lease, as text for messages."""
        return f"{number} of table_uuid={self._table_uuid!r} in {_LEASES.name!r} of {self._address}"

    def _unusable(self, number: object, owner: object, expires_millis: object) -> CorruptTableError:
        return CorruptTableError(
            f"{self._name} of {self._address} has number={number!r}, owner={owner!r} and "
            f"expires_millis={expires_millis!r}, which no batch has written. Stop all batches on "
            "the table, and delete this row: the next batch then writes a new one"
        )

    @property
    def _name(self) -> str:
        return f"the lease of table_uuid={self._table_uuid!r} in {_LEASES.name!r}"

    @property
    def _address(self) -> str:
        return str(self._database.address)

    @property
    def _here(self) -> ColumnElement[bool]:
        return and_(
            _LEASES.c.catalog_name == self._catalog, _LEASES.c.table_uuid == self._table_uuid
        )


def _values(lease: StoredLease) -> dict[str, int | str]:
    return {
        "number": lease.number,
        "owner": lease.owner,
        "expires_millis": min(lease.expires_millis, _LARGEST),
    }
