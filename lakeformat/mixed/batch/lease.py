# SPDX-License-Identifier: Apache-2.0
"""The lease of the batch that runs on a table: files below ``_lake/lease`` in the base store.

Each holder creates the file with the next number, which only one writer can do, and renews it. The
file with the highest number is the lease. A lease that was not renewed for ``LEASE_MILLIS`` is
stale: the next holder takes it over. A holder that was paused for so long notices it before its
commit, because a file with a higher number exists.
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass

from lakeformat.environment import Environment
from lakeformat.errors import (
    CommitOutcomeUnknownError,
    LakeError,
    LockUnavailableError,
    NotFoundError,
)
from lakeformat.storage import Storage
from lakeformat.storage.base import vanished
from lakeformat.tables.create_once import create_once
from lakeformat.tables.file_name_part import suffixed
from lakeformat.tables.json_file import NO_JSON
from lakeformat.tables.moment import moment_text

__all__ = ["LEASE_MILLIS", "Lease", "StoredLease", "take_lease"]

_log = logging.getLogger(__name__)

LEASE_MILLIS = 60_000
"""The time in milliseconds after which a lease that is not renewed is stale, as in Amoro."""
_RENEWALS = 3
"""The number of renewals within the lifetime of a lease."""
_PREFIX = "lease-"


@dataclass(frozen=True, slots=True)
class StoredLease:
    """The lease with the highest number, as the storage has it."""

    number: int
    owner: str
    expires_millis: int
    """The time at which the lease is stale; 0 if its holder has released it."""

    def is_held(self, now_millis: int) -> bool:
        """Return True if a batch still runs under this lease."""
        return now_millis < self.expires_millis

    @classmethod
    def newest(cls, storage: Storage, directory: str) -> StoredLease | None:
        """Return the lease with the highest number; None if there never was one."""
        found = _numbered(storage, directory)
        if not found:
            return None
        number = max(found)
        try:
            members = json.loads(storage.read(_path(directory, number)))
            return cls(number, str(members["owner"]), int(members["expiresMillis"]))
        except (*NO_JSON, KeyError, TypeError, ValueError, OverflowError, NotFoundError):
            # A renewal writes the file right now, or was interrupted.
            return cls(number, "", found[number] + LEASE_MILLIS)


class Lease:
    """A lease that this process holds and renews until ``release``."""

    def __init__(
        self, storage: Storage, directory: str, number: int, owner: str, environment: Environment
    ) -> None:
        self.number = number
        self._storage = storage
        self._directory = directory
        self._owner = owner
        self._environment = environment
        self._guard = threading.Lock()
        self._ended = threading.Event()

    def keep_renewing(self) -> None:
        """Renew the lease in a thread."""
        threading.Thread(target=self._renew_in_turns, name="lake-lease", daemon=True).start()

    def require(self, work: str) -> None:
        """Renew the lease; raise ``LockUnavailableError`` if another holder has taken it over.

        ``work`` names the commit that needs the lease.
        """
        with self._guard:
            newest = max(_numbered(self._storage, self._directory), default=0)
            if newest != self.number or self._ended.is_set():
                raise LockUnavailableError(
                    f"{work} lost its lease {self._storage.uri(self._own_path)}: it was not "
                    f"renewed for {LEASE_MILLIS // 1000} s, and another batch has taken it over. "
                    "Nothing was published: begin a new batch"
                )
            self._write(self._environment.now_millis() + LEASE_MILLIS)

    def stop_renewing(self) -> None:
        """Stop the renewals, so that the lease becomes stale: called when the batch is garbage
        without a commit or ``abort``.
        """
        self._ended.set()

    def release(self) -> None:
        """Release the lease, so that the next batch need not wait; a failure is only logged."""
        self._ended.set()
        with self._guard:
            try:
                newest = max(_numbered(self._storage, self._directory), default=0)
                if newest == self.number:
                    self._write(0)
            except LakeError as error:
                _log.warning(
                    "the lease %s was not released and ends in at most %d s: %s",
                    self._storage.uri(self._own_path),
                    LEASE_MILLIS // 1000,
                    error,
                )

    @property
    def _own_path(self) -> str:
        return _path(self._directory, self.number)

    def _write(self, expires_millis: int) -> None:
        content = _content(self._owner, expires_millis)
        self._storage.overwrite(self._own_path, content)

    def _renew_in_turns(self) -> None:
        while not self._ended.wait(LEASE_MILLIS / 1000 / _RENEWALS):
            try:
                self.require("a batch")
            except LockUnavailableError:
                return  # the commit of the batch raises it
            except LakeError as error:
                _log.warning("a batch could not renew its lease and will try again: %s", error)


def take_lease(storage: Storage, directory: str, table: str, environment: Environment) -> Lease:
    """Take the lease of a table; raise ``LockUnavailableError`` while another batch holds it."""
    now = environment.now_millis()
    newest = StoredLease.newest(storage, directory)
    if newest is not None and newest.is_held(now):
        raise LockUnavailableError(
            f"a batch runs on {table}: it holds the lease "
            f"{storage.uri(_path(directory, newest.number))} until "
            f"{moment_text(newest.expires_millis)} and may renew it. Only one batch can run at a "
            "time: retry after it has ended"
        )
    number, owner = 1 if newest is None else newest.number + 1, environment.new_id()
    if not _create(storage, directory, number, _content(owner, now + LEASE_MILLIS)):
        raise LockUnavailableError(
            f"another batch on {table} took the lease at the same moment. Only one batch can run "
            "at a time: retry after it has ended"
        )
    lease = Lease(storage, directory, number, owner, environment)
    with suppress(LakeError):  # they have no effect any more
        for each in _numbered(storage, directory):
            if each < number:
                storage.delete(_path(directory, each))
    lease.keep_renewing()
    return lease


def _create(storage: Storage, directory: str, number: int, content: bytes) -> bool:
    """Create the file of a lease, and its directory unless the table was dropped meanwhile."""
    path = _path(directory, number)
    try:
        if not storage.directory_exists(directory):
            table = directory.rsplit("/", 2)[0]
            if not storage.directory_exists(table):
                raise vanished(storage.uri(path))
            storage.make_directory(directory)
        return create_once(storage, path, content)
    except CommitOutcomeUnknownError:
        raise LockUnavailableError(
            f"the storage did not confirm the lease {storage.uri(path)}, so no batch began: retry. "
            f"If the lease was written, it ends in {LEASE_MILLIS // 1000} s"
        ) from None


def _numbered(storage: Storage, directory: str) -> dict[int, int]:
    """Return the time of the last change of each lease, in epoch milliseconds, by its number."""
    found = ((suffixed(each.name, _PREFIX), each) for each in storage.list(directory))
    return {
        int(number): each.modified_millis
        for number, each in found
        if number is not None and number.isascii() and number.isdecimal()
    }


def _path(directory: str, number: int) -> str:
    return f"{directory}/{_PREFIX}{number:010}"


def _content(owner: str, expires_millis: int) -> bytes:
    return json.dumps({"owner": owner, "expiresMillis": expires_millis}).encode()
