# SPDX-License-Identifier: Apache-2.0
"""The SQL statements of a lock, for SQLite and PostgreSQL, and the expiry of its row.

This library writes times in UTC, by the database's clock; rows of other programs may have another
zone. On PostgreSQL each expression that reads the clock names UTC, because a connection pool may
return a connection that is set to another time zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from random import SystemRandom

from sqlalchemy import Connection, bindparam, text

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.sql.tables import LOCKS_NAME

__all__ = ["LockRow", "LockRows", "has_expired", "new_token"]

# The last digits of the microseconds in rows of this library. A row of another program ends in them
# once in a thousand times by chance; such a row is then treated as a row in UTC.
OUR_MARK = "731"
FARTHEST_ZONE_SECONDS = 12 * 3600
"""The largest number of seconds that a local clock can be behind UTC."""

_chance = SystemRandom()


@dataclass(frozen=True, slots=True)
class LockRow:
    """The row of a lock, held or expired."""

    acquired_at: str
    """The time of the last acquisition or renewal, as text."""
    lease_seconds: int
    age_seconds: float | None
    """The seconds since ``acquired_at`` by the database's clock; None if that text is not a
    time.
    """
    zone_known: bool
    """True if the time is certainly UTC."""


def has_expired(row: LockRow, watched_seconds: float) -> bool:
    """Return True if a row may be taken over.

    ``watched_seconds`` is the time for which this process has seen the row unchanged. The row has
    expired if this time or the row's age is longer than its lifetime. If the time zone of the row
    is unknown, the age must exceed the lifetime by more than ``FARTHEST_ZONE_SECONDS``.
    """
    if watched_seconds >= row.lease_seconds:
        return True
    if row.age_seconds is None:
        return False
    return row.age_seconds > row.lease_seconds + (0 if row.zone_known else FARTHEST_ZONE_SECONDS)


def new_token(now: str) -> str:
    """Return the text for the time column of a row: ``now``, random digits, and the mark of this
    library.

    The random digits distinguish most rows of the same second.
    """
    return f"{now}.{_chance.randrange(1000):03}{OUR_MARK}"


class LockRows:
    """Reads and writes the row of one lock."""

    def __init__(self, lock_id: str, is_sqlite: bool) -> None:
        self._id = lock_id
        self._is_sqlite = is_sqlite
        self._sql = _SQLITE if is_sqlite else _POSTGRESQL

    def wait_at_most(self, connection: Connection, seconds: float) -> None:
        """Limit the time for which this transaction waits for another transaction.

        On SQLite do nothing, because ``SqlDatabase.writing_on`` sets the limit there.
        """
        if not self._is_sqlite:
            milliseconds = max(1, int(seconds * 1000))
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")

    def now(self, connection: Connection) -> str:
        """Return the database's clock to the second, in UTC."""
        return str(connection.execute(text(f"SELECT {self._sql.now}")).scalar_one())

    def read(self, connection: Connection) -> LockRow | None:
        """Return the row of the lock; None if there is no row.

        Raise ``InvalidRequestError`` if the lifetime in the row is not a number.
        """
        sql = self._sql
        question = (
            f"SELECT {sql.shown}, expire_time_seconds, {sql.age} FROM {LOCKS_NAME}"
            " WHERE lock_id = :id"
        )
        found = connection.execute(text(question), {"id": self._id}).one_or_none()
        if found is None:
            return None
        acquired_at, lease, age = found
        ours = str(acquired_at).endswith(OUR_MARK)
        known = self._is_sqlite or ours  # SQLite's own clock has no other zone
        if not isinstance(lease, int | float) or not isfinite(lease):
            raise InvalidRequestError(
                f"the row of the lock {self._id} in {LOCKS_NAME} has expire_time_seconds="
                f"{lease!r}, which is not a number, so it is unknown when the lock expires: delete "
                "the row when no program commits to the table"
            )
        return LockRow(str(acquired_at), int(lease), None if age is None else float(age), known)

    def insert(self, connection: Connection, token: str, lease_seconds: int) -> bool:
        """Insert the row and return True; return False if the row exists."""
        statement = (
            f"INSERT INTO {LOCKS_NAME} (lock_id, acquired_at, expire_time_seconds)"
            f" VALUES (:id, {self._sql.token}, :lease) ON CONFLICT (lock_id) DO NOTHING"
        )
        values = {"id": self._id, "token": token, "lease": lease_seconds}
        return connection.execute(text(statement), values).rowcount == 1

    def renew(self, connection: Connection, tokens: Sequence[str], fresh: str) -> bool:
        """Replace the time in the row by ``fresh`` and return True, if the row has one of the times
        in ``tokens``.

        Otherwise return False.
        """
        statement = text(
            f"UPDATE {LOCKS_NAME} SET acquired_at = {self._sql.token}"
            f" WHERE lock_id = :id AND {self._sql.shown} IN :tokens"
        ).bindparams(bindparam("tokens", expanding=True))
        values = {"id": self._id, "token": fresh, "tokens": [*tokens]}
        return connection.execute(statement, values).rowcount == 1

    def delete(self, connection: Connection, tokens: Sequence[str]) -> bool:
        """Delete the row if its time is one of ``tokens``; return False if no row has one of these
        times.
        """
        statement = text(
            f"DELETE FROM {LOCKS_NAME} WHERE lock_id = :id AND {self._sql.shown} IN :tokens"
        ).bindparams(bindparam("tokens", expanding=True))
        values = {"id": self._id, "tokens": [*tokens]}
        return connection.execute(statement, values).rowcount == 1


@dataclass(frozen=True, slots=True)
class _LockExpressions:
    now: str
    age: str
    shown: str
    """The time of a row as text, equal to the token that was written."""
    token: str


_SQLITE = _LockExpressions(
    now="strftime('%Y-%m-%d %H:%M:%S', 'now')",
    age="strftime('%s', 'now') - strftime('%s', acquired_at)",
    shown="CAST(acquired_at AS TEXT)",
    token=":token",
)
_POSTGRESQL = _LockExpressions(
    now="to_char(timezone('UTC', clock_timestamp()), 'YYYY-MM-DD HH24:MI:SS')",
    age="EXTRACT(EPOCH FROM timezone('UTC', clock_timestamp()) - acquired_at)",
    shown="to_char(acquired_at, 'YYYY-MM-DD HH24:MI:SS.US')",
    token="CAST(:token AS TIMESTAMP)",
)
