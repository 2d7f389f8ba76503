# SPDX-License-Identifier: Apache-2.0
"""A database, SQLite or PostgreSQL, that is used in short transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from weakref import WeakSet, finalize

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from lakeformat.errors import NotFoundError
from lakeformat.storage.sql.address import SQLITE, DatabaseAddress
from lakeformat.storage.sql.failure import translated

__all__ = ["SqlDatabase"]

_WRITES = "lake_writes"


class SqlDatabase:
    """Connections to one database, opened on first use."""

    def __init__(self, address: DatabaseAddress, pool_size: int = 2) -> None:
        self.address = address
        with translated(address, "load the driver"):
            self._engine = _engine(address, pool_size=pool_size, pool_pre_ping=True)
            self._apart = _engine(address, poolclass=NullPool)
        self._prepare: Callable[[], None] | None = None
        _ForkedConnections.watch(self._engine)
        finalize(self, self._engine.dispose)  # a catalog is dropped rather than closed

    def __repr__(self) -> str:
        return f"<SqlDatabase {self.address}>"

    @property
    def is_sqlite(self) -> bool:
        """True for SQLite, False for PostgreSQL."""
        return self.address.backend == SQLITE

    @property
    def exists(self) -> bool:
        """True for PostgreSQL, and for SQLite if the file of the database exists.

        SQLite would create a missing file at the first read.
        """
        return not self.is_sqlite or os.path.exists(self.address.url.database or "")

    def prepare(self, prepare: Callable[[], None]) -> None:
        """Run ``prepare`` once: now if the database exists, else at the first use after its file
        was created.
        """
        self._prepare = prepare
        if self.exists:
            self._run_prepare()

    def create(self) -> None:
        """Create the file of a SQLite database, if it is missing."""
        if not self.exists:
            with translated(self.address, "create the file"), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA user_version")

    @contextmanager
    def reading(self, doing: str) -> Iterator[Connection]:
        """Run one transaction that changes nothing, in a with block; ``doing`` names it in
        messages.

        If the file of a SQLite database is missing, ``NotFoundError`` is raised.
        """
        self._require_exists(doing)
        with translated(self.address, doing), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, doing: str) -> Iterator[Connection]:
        """Run one transaction: commit at the end of the with block, roll back after an error.

        ``doing`` names the transaction in messages. If the file of a SQLite database is missing,
        ``NotFoundError`` is raised.
        """
        self._require_exists(doing)
        with (
            translated(self.address, doing),
            self._engine.connect() as connection,
            _transaction(connection),
        ):
            yield connection

    def connect_apart(self) -> Connection:
        """Open a connection outside of the pool, for one caller.

        If this connection is lost, a query on it fails. The pool would open a new connection
        without notice.
        """
        self._require_exists("connect")
        with translated(self.address, "connect"):
            return self._apart.connect()

    @contextmanager
    def writing_on(
        self, connection: Connection, doing: str, patience_seconds: float | None = None
    ) -> Iterator[Connection]:
        """Run one transaction as ``writing`` does, on a connection of the caller.

        For SQLite, ``patience_seconds`` shortens the wait for another program's transaction. The
        default wait is ``self.address.busy_seconds``.
        """
        with translated(self.address, doing):
            if self.is_sqlite:
                seconds = self.address.busy_seconds
                if patience_seconds is not None:
                    seconds = max(0.0, min(seconds, patience_seconds))
                cursor = (
                    connection.connection.cursor()
                )  # PRAGMA has to run outside of a transaction
                cursor.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
                cursor.close()
            with _transaction(connection):
                yield connection

    def _run_prepare(self) -> None:
        prepare, self._prepare = self._prepare, None
        if prepare is None:
            return
        try:
            prepare()
        except BaseException:
            self._prepare = prepare
            raise

    def _require_exists(self, doing: str) -> None:
        if self.exists:
            self._run_prepare()  # another program may have created the file meanwhile
            return
        has_directory = os.path.isdir(os.path.dirname(self.address.url.database or ""))
        first = "" if has_directory else "create the directory of the file; then "
        raise NotFoundError(
            f"cannot {doing} in the metastore {self.address}: this file does not exist. Correct "
            f"the path in the uri. For a new metastore, {first}create_database('shop') creates the "
            "file"
        )

    def close(self) -> None:
        """Close the open connections; the next query opens a new connection."""
        self._engine.dispose()


class _ForkedConnections:
    """The engines whose connections a forked process must not share with its parent.

    Shared connections would mix the answers of two processes.
    """

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
            engine.dispose(close=False)  # the parent process still uses them


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
    else:
        # The statements about locks and pointers are written for this level. At a stricter default
        # of the database, two programs that compete would fail instead of waiting.
        settings["isolation_level"] = "READ COMMITTED"
    engine = create_engine(address.url, hide_parameters=True, **settings)
    if sqlite:
        _begin_ourselves(engine)
    return engine


def _begin_ourselves(engine: Engine) -> None:
    """Make each transaction that writes take SQLite's write lock at its start.

    Python's driver takes the lock only at the first write. Then, if two transactions have both
    read, one of them fails when it writes.
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
