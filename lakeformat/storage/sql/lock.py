# SPDX-License-Identifier: Apache-2.0
"""A lock that is a row; Java's JDBC catalog and this library respect each other's rows.

Java deletes a row that is older than its ``expire_time_seconds``, and inserts a new one. It stores
no owner, never renews, and treats every SQL error as contention. This library differs:

- ``acquired_at`` of a row is a UTC time of the database's clock with random digits. It is the
  token of the owner: only the owner renews or releases the row.
- A thread renews the row while the lock is held. ``require_time`` renews it once more right
  before a publication, so a paused holder learns there that a successor has the lock.
- Only an existing row is contention; any other error of the database is raised at once.
- A row of another program may be in the local time of its host. It is taken over only if it would
  be too old in every time zone, or was unchanged for its whole lifetime.
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
from lakeformat.types.sentence import sentence

__all__ = ["LeasedRow", "LockSettings", "SqlLock"]

logger = logging.getLogger(__name__)

FIRST_SLEEP_SECONDS = 0.1
LAST_MOMENT_SECONDS = 1.0
RENEWALS_PER_DEADLINE = 3
"""The number of renewals in half of the lease.

After each renewal, the lock is trusted for half of the lease.
"""


def elapsed_seconds() -> float:
    """Return the seconds of a clock that is never set back or forward.

    If the system has ``CLOCK_BOOTTIME``, the clock also counts while the machine sleeps.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class LockSettings:
    """The lifetime of a lock, and the longest wait for it."""

    acquire_timeout_seconds: float = 480.0
    """The longest wait in seconds; as in Paimon, also the lifetime of a lock that is not
    renewed.
    """
    max_sleep_seconds: float = 8.0
    key_length: int = 255

    @property
    def lease_seconds(self) -> int:
        """The lifetime in the row, in whole seconds."""
        return max(2, int(self.acquire_timeout_seconds))


class SqlLock:
    """The locks of one catalog; implements ``lakeformat.storage.lock.Lock``."""

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
        """Hold the lock of ``database.object`` in a with block; an error also releases the lock.

        Raise ``LockUnavailableError`` if the lock was not free within the timeout.
        """
        row = self.row(key)
        row.acquire()
        try:
            yield row
        finally:
            row.release()

    def row(self, key: str) -> LeasedRow:
        """Return the lock of ``database.object``, which is not held yet.

        Raise ``InvalidRequestError`` if the key is too long for its column.
        """
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
        return f"<LeasedRow {self}>"

    def __str__(self) -> str:
        return f"lock {self.lock_id} in {self._database.address}"

    def acquire(self) -> None:
        """Wait for the lock; raise ``LockUnavailableError`` if it was not free within the timeout.

        Raise ``InvalidRequestError`` if this object already holds the lock.
        """
        if self._connection is not None:
            raise InvalidRequestError(f"this object already holds {self}: release it first")
        with _lock_errors():
            self._connection = self._database.connect_apart()
        self._watched = self._loss = None
        give_up = self._clock() + self._settings.acquire_timeout_seconds
        pause = min(FIRST_SLEEP_SECONDS, self._settings.max_sleep_seconds)
        try:
            while (holder := self._asked(give_up)) is not None:
                left = give_up - self._clock()
                if left <= 0:
                    # If the lifetime of a row equals the timeout, the row expires a moment after
                    # the wait, because it was first seen a moment after the wait began.
                    left = holder.lease_seconds - self._watch(holder.acquired_at)
                    if not 0 < left < LAST_MOMENT_SECONDS:
                        raise self._timed_out(holder)
                self._sleep(min(pause, left))
                pause = min(2 * pause, self._settings.max_sleep_seconds)
        except BaseException:
            self.release()  # the row may be in the database although the answer was lost
            raise
        self._released = threading.Event()
        threading.Thread(
            target=self._keep_renewing, args=(self._released,), name="lake-lock", daemon=True
        ).start()

    def require_time(self, seconds: float = 0.0) -> None:
        """Renew the lock; raise ``LockUnavailableError`` if it is not held any more.

        Call this right before a publication. ``seconds`` is the longest time that the publication
        may take; more than half of the lease raises ``InvalidRequestError``.
        """
        self._require_lease(seconds)
        if self._loss is not None:
            raise self._loss
        if not self._tokens:
            raise InvalidRequestError(f"{self} is not held: acquire it first")
        with _lock_errors():
            self._renew()
        if self._clock() >= self._deadline:
            raise LockUnavailableError(
                f"the database's answer about {self} took too long to be trusted, because the "
                "lock may have expired. Nothing was published: retry"
            )

    def keep(self) -> None:
        """Stop renewing the row, and leave it in the database until it expires.

        Call this if the storage did not confirm a write under the lock: the write may still arrive.
        The next holder gets the lock only after the row has expired. After ``keep``, call only
        ``release``, which then does not delete the row.
        """
        self._released.set()
        with self._guard:
            self._tokens = []
            self._loss = LockUnavailableError(
                f"{self} is kept until it expires, in at most {self._settings.lease_seconds} s: "
                "the storage did not confirm a write that the lock protects, and that write could "
                "still replace a later one. Retry after the lock has expired"
            )
        logger.warning("%s", self._loss)

    def release(self) -> None:
        """Release the lock if this holder still has it. A row that could not be deleted expires
        later.
        """
        self._released.set()
        with self._guard:
            tokens, self._tokens = self._tokens, []
            try:
                if tokens:
                    with self._writing("release the lock") as connection:
                        self._rows.delete(connection, tokens)
            except LakeError as error:
                logger.warning(
                    "could not release %s: %s No action needed: it expires by itself",
                    self,
                    sentence(error),
                )
            finally:
                self._close()

    def _require_lease(self, seconds: float) -> None:
        if seconds > self._settings.lease_seconds / 2:
            raise InvalidRequestError(
                f"{self} is guaranteed only for {self._settings.lease_seconds / 2:g} s, but one "
                f"write with its retries may take {seconds:g} s. Nothing was written: set "
                f"lock-acquire-timeout to {math.ceil(2 * seconds)} s or more"
            )

    def _asked(self, give_up: float) -> LockRow | None:
        with _lock_errors():
            return self._try_once(give_up)

    def _try_once(self, give_up: float) -> LockRow | None:
        """Take the lock and return None, or return the row of its holder.

        ``give_up`` is the time until which the attempt waits for the database.
        """
        # A last attempt without patience would blame the database if another lock is just renewed.
        patience = max(give_up - self._clock(), LAST_MOMENT_SECONDS)
        with self._writing("acquire the lock", patience) as connection:
            self._rows.wait_at_most(connection, patience)
            row = self._rows.read(connection)
            if row is not None:
                if not has_expired(row, self._watch(row.acquired_at)):
                    return row
                self._rows.delete(connection, [row.acquired_at])
            token = new_token(self._rows.now(connection))
            if not self._rows.insert(connection, token, self._settings.lease_seconds):
                return self._rows.read(connection) or row or _UNKNOWN_HOLDER
            self._tokens = [token]
        return None  # require_time checks later how long the lock may be trusted

    def _watch(self, acquired_at: str) -> float:
        """Return the seconds since this process first saw the row with the time ``acquired_at``."""
        now = self._clock()
        if self._watched is None or self._watched[0] != acquired_at:
            self._watched = (acquired_at, now)
        return now - self._watched[1]

    def _renew(self) -> None:
        """Extend the lease.

        Raise ``LockUnavailableError`` if another holder has the lock, and ``UnavailableError`` if
        the database does not answer.
        """
        with self._guard:
            if not self._tokens:
                return
            sent = self._clock()
            patience = self._settings.lease_seconds / 2
            with self._writing("renew the lock", patience) as connection:
                self._rows.wait_at_most(connection, patience)
                fresh = new_token(self._rows.now(connection))
                # If the answer is lost, the row has either the old or the new time.
                before, self._tokens = self._tokens, [*self._tokens, fresh]
                renewed = self._rows.renew(connection, before, fresh)
            if not renewed:
                self._tokens = []
                self._loss = LockUnavailableError(
                    f"{self} was lost: it was not renewed in time, and another holder took it "
                    "over or deleted its row; nothing was published: retry the commit"
                )
                raise self._loss
            self._tokens = [fresh]
            self._trust_from(sent)

    def _trust_from(self, sent: float) -> None:
        """Trust the lock for half of the lease from ``sent`` on.

        ``sent`` is the time right before the renewal was sent to the database.
        """
        self._deadline = sent + self._settings.lease_seconds / 2

    def _keep_renewing(self, released: threading.Event) -> None:
        pause = self._settings.lease_seconds / 2 / RENEWALS_PER_DEADLINE
        while not released.wait(pause):
            try:
                self._renew()
            except LakeError as error:
                # require_time() reports the loss to the holder, which may prepare its commit until
                # then.
                if self._loss is not None:
                    logger.warning("%s was lost: the commit that it protects will fail", self)
                    return
                logger.warning(
                    "%s was not renewed: %s If no later renewal succeeds before it expires, the "
                    "next commit may fail",
                    self,
                    sentence(error),
                )

    def _writing(
        self, doing: str, patience_seconds: float | None = None
    ) -> AbstractContextManager[Connection]:
        assert self._connection is not None
        doing = f"{doing} {self.lock_id}"
        return self._database.writing_on(self._connection, doing, patience_seconds)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):  # a lost connection cannot be closed
                connection.close()

    def _timed_out(self, holder: LockRow) -> LockUnavailableError:
        waited = self._settings.acquire_timeout_seconds
        zone = "UTC" if holder.zone_known else "in the time zone of the program that holds it"
        row = (
            "another program released it a moment ago"
            if holder is _UNKNOWN_HOLDER
            else f"its row was renewed at {holder.acquired_at} ({zone}) and expires after "
            f"{holder.lease_seconds} s"
        )
        return LockUnavailableError(
            f"{self} was not free within {waited:g} s: {row}. Retry later, or raise "
            "lock-acquire-timeout"
        )


@contextmanager
def _lock_errors() -> Iterator[None]:
    """Translate ``UnavailableError`` into ``LockUnavailableError``.

    The message adds that nothing was published, because a publication needs the lock.
    """
    try:
        yield
    except LockUnavailableError:
        raise
    except UnavailableError as error:
        raise LockUnavailableError(f"{sentence(error)} Nothing was published") from None


_UNKNOWN_HOLDER = LockRow("a moment ago", 0, None, True)
"""Stands for a holder whose row was deleted between two statements."""
