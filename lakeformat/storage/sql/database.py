"""A database that is asked in short transactions; SQLite and PostgreSQL behave alike here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from weakref import WeakSet

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from lakeformat.storage.sql.address import SQLITE, DatabaseAddress
from lakeformat.storage.sql.failure import translated

__all__ = ["SqlDatabase"]

_WRITES = "lake_writes"


class SqlDatabase:
    """Connections to one database; they are opened when first needed."""

    def __init__(self, address: DatabaseAddress, pool_size: int = 2) -> None:
        self.address = address
        with translated(address, "load the driver"):
            self._engine = _engine(address, pool_size=pool_size, pool_pre_ping=True)
            self._apart = _engine(address, poolclass=NullPool)
        _Forks.watch(self._engine)

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
    def writing_on(
        self, connection: Connection, doing: str, patience_seconds: float | None = None
    ) -> Iterator[Connection]:
        """The same as ``writing`` on a connection of the caller's own.

        SQLite waits for another program's transaction before ours begins, so that the limit has
        to be set on the connection.
        """
        with translated(self.address, doing):
            if self.is_sqlite:
                seconds = self.address.busy_seconds
                if patience_seconds is not None:
                    seconds = max(0.0, min(seconds, patience_seconds))
                cursor = connection.connection.cursor()  # outside of any transaction
                cursor.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
                cursor.close()
            with _transaction(connection):
                yield connection

    def close(self) -> None:
        """Close the connections that are open; the next question opens new ones."""
        self._engine.dispose()


class _Forks:
    """A forked process must not talk over its parent's connections: the answers would mix."""

    _engines: ClassVar[WeakSet[Engine]] = WeakSet()
    _is_watched = False

    @classmethod
    def watch(cls, engine: Engine) -> None:
        cls._engines.add(engine)
        if not cls._is_watched:
            cls._is_watched = True
            os.register_at_fork(after_in_child=cls._forget)

    @classmethod
    def _forget(cls) -> None:
        for engine in [*cls._engines]:
            engine.dispose(close=False)  # they stay open: they are the parent's


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
