"""A lock that is a row: Java's JDBC catalog respects ours, and ours respects Java's.

Java deletes a row that is older than its ``expire_time_seconds`` and inserts its own. It keeps
no owner, never renews, and takes every SQL error for contention. Here

- a row's ``acquired_at``, in UTC by the database's clock, carries a random part: it is the token
  of its owner, and only the owner of a token renews or releases it;
- a thread renews the row as long as the lock is held, and ``require_time`` renews it once more
  right before a publication: a holder who was paused learns that a successor has taken over;
- only a row that exists is contention; any other refusal of the database is raised at once;
- a row another program wrote may be in the local time of its host: it is taken over only when it
  would be too old in every time zone, or was watched unchanged for as long as it may live.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import (
    InvalidRequestError,
    LakeError,
    LockUnavailableError,
    UnavailableError,
)
from lakeformat.storage.sql.database import SqlDatabase
from lakeformat.storage.sql.lock_rows import LockRow, LockRows, has_expired, new_token

__all__ = ["LeasedRow", "LockSettings", "SqlLock"]

logger = logging.getLogger(__name__)

FIRST_SLEEP_SECONDS = 0.1
LAST_MOMENT_SECONDS = 1.0
RENEWALS_PER_DEADLINE = 3
"""How often a lock is renewed while its holder may trust it without asking."""


def elapsed_seconds() -> float:
    """A clock that never jumps and also runs while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class LockSettings:
    """How long a lock lives and is waited for."""

    acquire_timeout_seconds: float = 480.0
    """How long to wait, and, as in Java, how long a lock lives that nobody renews."""
    max_sleep_seconds: float = 8.0
    key_length: int = 255

    @property
    def lease_seconds(self) -> int:
        """What the row says, in whole seconds."""
        return max(2, int(self.acquire_timeout_seconds))


class SqlLock:
    """The locks of one catalog; keeps the promises of ``lakeformat.storage.lock.Lock``."""

    def __init__(
        self,
        database: SqlDatabase,
        catalog_key: str,
        settings: LockSettings,
        environment: Environment = SYSTEM,
        clock: Callable[[], float] = elapsed_seconds,
    ) -> None:
        self._database = database
        self._catalog_key = catalog_key
        self._settings = settings
        self._environment = environment
        self._clock = clock

    @contextmanager
    def hold(self, key: str) -> Iterator[LeasedRow]:
        """Hold the lock of ``database.object``; released when the block ends, however it ends."""
        row = self.row(key)
        row.acquire()
        try:
            yield row
        finally:
            row.release()

    def row(self, key: str) -> LeasedRow:
        """The lock of ``database.object``, not held yet."""
        lock_id = f"{self._catalog_key}.{key}"
        if len(lock_id) > self._settings.key_length:
            raise InvalidRequestError(
                f"the lock key {lock_id!r} has {len(lock_id)} characters, more than "
                f"lock-key-max-length={self._settings.key_length}: use shorter names, or widen "
                "the column lock_id and raise that option"
            )
        return LeasedRow(self._database, lock_id, self._settings, self._environment, self._clock)


class LeasedRow:
    """One lock, held from ``acquire`` to ``release``."""

    def __init__(
        self,
        database: SqlDatabase,
        lock_id: str,
        settings: LockSettings,
        environment: Environment,
        clock: Callable[[], float],
    ) -> None:
        self.lock_id = lock_id
        self._database = database
        self._settings = settings
        self._sleep = environment.sleep_seconds
        self._clock = clock
        self._rows = LockRows(lock_id, database.is_sqlite)
        self._guard = threading.RLock()  # the renewing thread uses the same connection
        self._connection: Connection | None = None
        self._tokens: list[str] = []
        self._deadline = 0.0
        self._watched: tuple[str, float] | None = None
        self._loss: LakeError | None = None
        self._released = threading.Event()

    def __repr__(self) -> str:
        return f"<lock {self.lock_id} in {self._database.address}>"

    def acquire(self) -> None:
        """Wait for the lock; ``LockUnavailableError`` when it was not free within the timeout."""
        if self._connection is not None:
            raise InvalidRequestError(f"{self!r} is held already")
        with _lock_errors():
            self._connection = self._database.connect_apart()
        self._watched = self._loss = None
        give_up = self._clock() + self._settings.acquire_timeout_seconds
        pause = min(FIRST_SLEEP_SECONDS, self._settings.max_sleep_seconds)
        try:
            while (holder := self._asked(give_up)) is not None:
                left = give_up - self._clock()
                if left <= 0:
                    # A row that lives as long as we wait was first seen a moment after we began.
                    left = holder.lease_seconds - self._watch(holder.acquired_at)
                    if not 0 < left < LAST_MOMENT_SECONDS:
                        raise self._timed_out(holder)
                self._sleep(min(pause, left))
                pause = min(2 * pause, self._settings.max_sleep_seconds)
        except BaseException:
            self.release()  # the row may be ours although its answer was lost
            raise
        self._released = threading.Event()
        threading.Thread(
            target=self._keep_renewing, args=(self._released,), name="lake-lock", daemon=True
        ).start()

    def require_time(self, seconds: float = 0.0) -> None:
        """Prove that the lock is still ours, or raise: call it immediately before publishing."""
        self._require_lease(seconds)
        if self._loss is not None:
            raise self._loss
        if not self._tokens:
            raise InvalidRequestError(f"{self!r} is not held: acquire it first")
        with _lock_errors():
            self._renew()
        if self._clock() >= self._deadline:
            raise LockUnavailableError(
                f"the answer about {self!r} came too late to be trusted: nothing was published, "
                "retry"
            )

    def keep(self) -> None:
        """Leave the row to expire by itself; only ``release``, which removes nothing, may follow.

        It was renewed a moment ago, so nobody takes the lock for most of its lease.
        """
        self._released.set()
        with self._guard:
            self._tokens = []
            self._loss = LockUnavailableError(
                f"{self!r} is kept until it expires, at most {self._settings.lease_seconds} s: a"
                " write under it got no answer and may still arrive. Retry then"
            )
        logger.warning("%s", self._loss)

    def release(self) -> None:
        """Give the lock back if it is still ours; a row that stays by mishap expires."""
        self._released.set()
        with self._guard:
            tokens, self._tokens = self._tokens, []
            try:
                if tokens:
                    with self._writing("release the lock") as connection:
                        self._rows.delete(connection, tokens)
            except LakeError as error:
                logger.warning("%r was not released and expires by itself: %s", self, error)
            finally:
                self._close()

    def _require_lease(self, seconds: float) -> None:
        """Half of the lease is left at least when the proof has been given."""
        if seconds > self._settings.lease_seconds / 2:
            raise InvalidRequestError(
                f"{self!r} is surely held for {self._settings.lease_seconds / 2:g} s, and a write"
                f" to the store may take {seconds:g} s, its repeats included: nothing was written."
                f" Set lock-acquire-timeout to {math.ceil(2 * seconds)} s or more, or a shorter"
                " s3.connection.timeout"
            )

    def _asked(self, give_up: float) -> LockRow | None:
        with _lock_errors():
            return self._try_once(give_up)

    def _try_once(self, give_up: float) -> LockRow | None:
        """Take the lock and return None, or return the row of its holder."""
        with self._writing("acquire the lock", give_up - self._clock()) as connection:
            self._rows.wait_at_most(connection, give_up - self._clock())
            row = self._rows.read(connection)
            if row is not None:
                if not has_expired(row, self._watch(row.acquired_at)):
                    return row
                self._rows.delete(connection, [row.acquired_at])
            token = new_token(self._rows.now(connection))
            if not self._rows.insert(connection, token, self._settings.lease_seconds):
                return self._rows.read(connection) or row or _SOMEBODY
            self._tokens = [token]
        return None  # how long it may be trusted is for the proof before a publication to say

    def _watch(self, acquired_at: str) -> float:
        """For how many seconds this very row has been seen."""
        now = self._clock()
        if self._watched is None or self._watched[0] != acquired_at:
            self._watched = (acquired_at, now)
        return now - self._watched[1]

    def _renew(self) -> None:
        """Extend the lease; raises when the row is not ours any more or nobody answers."""
        with self._guard:
            if not self._tokens:
                return
            sent = self._clock()
            patience = self._settings.lease_seconds / 2
            with self._writing("renew the lock", patience) as connection:
                self._rows.wait_at_most(connection, patience)
                fresh = new_token(self._rows.now(connection))
                # If the answer is lost, the row has the one time or the other.
                before, self._tokens = self._tokens, [*self._tokens, fresh]
                renewed = self._rows.renew(connection, before, fresh)
            if not renewed:
                self._tokens = []
                self._loss = LockUnavailableError(
                    f"{self!r} was lost: it was not renewed in time, and another holder has taken "
                    "it over or removed it; nothing was published, retry"
                )
                raise self._loss
            self._tokens = [fresh]
            self._trust_from(sent)

    def _trust_from(self, sent: float) -> None:
        """Half of the lease, counted from before the database was asked."""
        self._deadline = sent + self._settings.lease_seconds / 2

    def _keep_renewing(self, released: threading.Event) -> None:
        pause = self._settings.lease_seconds / 2 / RENEWALS_PER_DEADLINE
        while not released.wait(pause):
            try:
                self._renew()
            except LakeError as error:
                # The holder hears of it from require_time(); until then it may go on preparing.
                logger.warning("%r was not renewed: %s", self, error)

    def _writing(
        self, doing: str, patience_seconds: float | None = None
    ) -> AbstractContextManager[Connection]:
        assert self._connection is not None
        doing = f"{doing} {self.lock_id}"
        return self._database.writing_on(self._connection, doing, patience_seconds)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):  # a connection that is lost cannot be closed either
                connection.close()

    def _timed_out(self, holder: LockRow) -> LockUnavailableError:
        waited = self._settings.acquire_timeout_seconds
        return LockUnavailableError(
            f"{self!r} was not free within {waited:g} s: its row is of {holder.acquired_at} (UTC "
            f"unless Java wrote it) and lives {holder.lease_seconds} s. Retry later, or raise "
            "lock-acquire-timeout"
        )


@contextmanager
def _lock_errors() -> Iterator[None]:
    """Whoever cannot ask about the lock has not published: no outcome is open."""
    try:
        yield
    except LockUnavailableError:
        raise
    except UnavailableError as error:
        raise LockUnavailableError(f"{error}. Nothing was published") from None


_SOMEBODY = LockRow("a moment ago", 0, None, True)
"""A holder that came and went between two statements."""
