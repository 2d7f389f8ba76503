"""A database that is asked in short transactions; SQLite and PostgreSQL behave alike here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from lakeformat.sql.address import SQLITE, DatabaseAddress
from lakeformat.sql.failure import translated

__all__ = ["SqlDatabase"]

_WRITES = "lake_writes"


class SqlDatabase:
    """Connections to one database; they are opened when first needed."""

    def __init__(self, address: DatabaseAddress, pool_size: int = 2) -> None:
        self.address = address
        with translated(address, "load the driver"):
            self._engine = _engine(address, pool_size=pool_size, pool_pre_ping=True)
            self._apart = _engine(address, poolclass=NullPool)

    def __repr__(self) -> str:
        return f"<SqlDatabase {self.address}>"

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite; PostgreSQL otherwise."""
        return self.address.backend == SQLITE

    @contextmanager
    def reading(self, doing: str) -> Iterator[Connection]:
        """One transaction that changes nothing."""
        with translated(self.address, doing), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, doing: str) -> Iterator[Connection]:
        """One transaction, committed when the block ends and undone when it raises."""
        with (
            translated(self.address, doing),
            self._engine.connect() as connection,
            _transaction(connection),
        ):
            yield connection

    def connect_apart(self) -> Connection:
        """A connection of the caller's own: nobody else waits behind it, and its loss is seen."""
        with translated(self.address, "connect"):
            return self._apart.connect()

    @contextmanager
    def writing_on(self, connection: Connection, doing: str) -> Iterator[Connection]:
        """The same as ``writing`` on a connection of the caller's own."""
        with translated(self.address, doing), _transaction(connection):
            yield connection

    def close(self) -> None:
        """Close the connections that are open; the next question opens new ones."""
        self._engine.dispose()


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    connection.execution_options(**{_WRITES: True})
    with connection.begin():
        yield


def _engine(address: DatabaseAddress, **settings: Any) -> Engine:
    sqlite = address.backend == SQLITE
    if sqlite:
        settings["connect_args"] = {
            "timeout": address.busy_seconds,
            "check_same_thread": False,
        }
    engine = create_engine(address.url, hide_parameters=True, **settings)
    if sqlite:
        _begin_ourselves(engine)
    return engine


def _begin_ourselves(engine: Engine) -> None:
    """Take SQLite's write lock when a transaction starts.

    Python's driver begins late, so that two writers which both read first would refuse each other.
    """

    @event.listens_for(engine, "connect")
    def leave_transactions_to_us(connection: Any, _: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        except SQLAlchemyError:
            connection.invalidate()
            raise
