"""The statements a lock consists of, for SQLite and PostgreSQL, and when a row has expired.

Times are UTC by the database's clock, said so in each statement: a pool between us and the
database may give a connection whose settings somebody else has changed.
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

# Ends the microseconds of rows we wrote. Another program hits it once in a thousand rows, which
# is then judged as that program judges its own.
OUR_MARK = "731"
FARTHEST_ZONE_SECONDS = 12 * 3600
"""How far behind UTC a clock on a wall can be."""

_chance = SystemRandom()


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock somebody holds, or held."""

    acquired_at: str
    """Changes whenever the lock is taken or renewed."""
    lease_seconds: int
    age_seconds: float | None
    """By the database's clock if the time is UTC; None when it is no time."""
    zone_known: bool
    """Whether the time is certainly UTC."""


def has_expired(row: LockRow, watched_seconds: float) -> bool:
    """Whether a row may be taken over that was watched unchanged for some time."""
    if watched_seconds >= row.lease_seconds:
        return True
    if row.age_seconds is None:
        return False
    return row.age_seconds > row.lease_seconds + (0 if row.zone_known else FARTHEST_ZONE_SECONDS)


def new_token(now: str) -> str:
    """The time of a row of ours: nobody else writes the same."""
    return f"{now}.{_chance.randrange(1000):03}{OUR_MARK}"


class LockRows:
    """Reads and writes the row of one lock."""

    def __init__(self, lock_id: str, is_sqlite: bool) -> None:
        self._id = lock_id
        self._is_sqlite = is_sqlite
        self._sql = _SQLITE if is_sqlite else _POSTGRESQL

    def wait_at_most(self, connection: Connection, seconds: float) -> None:
        """Limit how long this transaction waits for one that does not end; SQLite has its own."""
        if not self._is_sqlite:
            milliseconds = max(1, int(seconds * 1000))
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")

    def now(self, connection: Connection) -> str:
        """The database's clock to the second, in UTC."""
        return str(connection.execute(text(f"SELECT {self._sql.now}")).scalar_one())

    def read(self, connection: Connection) -> LockRow | None:
        """The row, if there is one."""
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
                f"the row of the lock {self._id} in {LOCKS_NAME} says expire_time_seconds="
                f"{lease!r}, which is no number: remove that row once nobody holds the lock"
            )
        return LockRow(str(acquired_at), int(lease), None if age is None else float(age), known)

    def insert(self, connection: Connection, token: str, lease_seconds: int) -> bool:
        """Take the lock; False if its row exists, any other trouble raises."""
        statement = (
            f"INSERT INTO {LOCKS_NAME} (lock_id, acquired_at, expire_time_seconds)"
            f" VALUES (:id, {self._sql.token}, :lease) ON CONFLICT (lock_id) DO NOTHING"
        )
        values = {"id": self._id, "token": token, "lease": lease_seconds}
        return connection.execute(text(statement), values).rowcount == 1

    def renew(self, connection: Connection, tokens: Sequence[str], fresh: str) -> bool:
        """Give a row that is ours a new time; False if it is not there."""
        statement = text(
            f"UPDATE {LOCKS_NAME} SET acquired_at = {self._sql.token}"
            f" WHERE lock_id = :id AND {self._sql.shown} IN :tokens"
        ).bindparams(bindparam("tokens", expanding=True))
        values = {"id": self._id, "token": fresh, "tokens": [*tokens]}
        return connection.execute(statement, values).rowcount == 1

    def delete(self, connection: Connection, tokens: Sequence[str]) -> bool:
        """Remove the row that has one of these times; False if there is none."""
        statement = text(
            f"DELETE FROM {LOCKS_NAME} WHERE lock_id = :id AND {self._sql.shown} IN :tokens"
        ).bindparams(bindparam("tokens", expanding=True))
        values = {"id": self._id, "tokens": [*tokens]}
        return connection.execute(statement, values).rowcount == 1


@dataclass(frozen=True, slots=True)
class _Words:
    now: str
    age: str
    shown: str
    """The time of a row as text, equal to the token it was written with."""
    token: str


_SQLITE = _Words(
    now="strftime('%Y-%m-%d %H:%M:%S', 'now')",
    age="strftime('%s', 'now') - strftime('%s', acquired_at)",
    shown="CAST(acquired_at AS TEXT)",
    token=":token",
)
_POSTGRESQL = _Words(
    now="to_char(timezone('UTC', clock_timestamp()), 'YYYY-MM-DD HH24:MI:SS')",
    age="EXTRACT(EPOCH FROM timezone('UTC', clock_timestamp()) - acquired_at)",
    shown="to_char(acquired_at, 'YYYY-MM-DD HH24:MI:SS.US')",
    token="CAST(:token AS TIMESTAMP)",
)
