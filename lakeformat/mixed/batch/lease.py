# SPDX-License-Identifier: Apache-2.0
"""The lease of the batch that runs on a table; the process of the batch renews the lease.

A lease that was not renewed for ``LEASE_MILLIS`` is stale: the next holder takes it over. The lease
is a row of a SQL catalog, or a file for other catalogs.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from lakeformat.environment import Environment
from lakeformat.errors import LakeError, LockUnavailableError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.own_files import own_directory
from lakeformat.mixed.batch.lease_files import LeaseFiles
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.tables.lease import KeepsLeases, Leases, StoredLease
from lakeformat.tables.moment import moment_text
from lakeformat.types.sentence import sentence

__all__ = ["LEASE_MILLIS", "Lease", "leases_of", "take_lease"]

_log = logging.getLogger(__name__)

LEASE_MILLIS = 60_000
"""The time in milliseconds after which a lease that is not renewed is stale, as in Amoro."""
_RENEWALS = 3
"""The number of renewals within the lifetime of a lease."""
_CLOCKS_MILLIS = 600_000
"""The tolerance, in milliseconds, for another machine whose clock is ahead.

A batch cannot begin while another one holds the lease. If the lease ends more than ``LEASE_MILLIS``
plus this tolerance after now, the error names a forged lease or a wrong clock as the cause.
"""
_DIRECTORY = "lease"


def leases_of(pair: StorePair) -> Leases:
    """Return the leases of a table: those of its catalog, or files in the base store if the catalog
    keeps none.
    """
    pointer, key = pair.base.pointer, pair.base.load().metadata.table_uuid
    if key is not None and isinstance(pointer, KeepsLeases):
        found = pointer.leases(key)
        if found is not None:
            return found
    return LeaseFiles(*own_directory(pair.base, _DIRECTORY), LEASE_MILLIS)


class Lease:
    """A lease that this process holds and renews until ``release``."""

    def __init__(self, leases: Leases, stored: StoredLease, environment: Environment) -> None:
        self.number = stored.number
        self._leases = leases
        self._stored = stored
        self._environment = environment
        self._guard = threading.Lock()
        self._ended = threading.Event()

    def keep_renewing(self) -> None:
        """Renew the lease in a thread."""
        threading.Thread(target=self._renew_in_turns, name="lake-lease", daemon=True).start()

    def require(self, work: str) -> None:
        """Renew the lease; raise ``LockUnavailableError`` if it was released or taken over.

        ``work`` names the commit that needs the lease.
        """
        with self._guard:
            ends = self._environment.now_millis() + LEASE_MILLIS
            if self._ended.is_set() or not self._write(ends):
                raise LockUnavailableError(
                    f"{work} lost its lease {self._leases.place(self.number)}: another batch took "
                    f"it over after {LEASE_MILLIS // 1000} s without a renewal, or `lake "
                    "end-batch` has ended this one. Nothing was published: begin a new batch "
                    "with table.begin()"
                )

    def stop_renewing(self) -> None:
        """Stop the renewals, so that the lease becomes stale. Called when the batch is
        garbage-collected.
        """
        self._ended.set()

    def release(self) -> None:
        """Release the lease, so that the next batch need not wait; a failure is only logged."""
        self._ended.set()
        with self._guard:
            try:
                self._write(0)
            except LakeError as error:
                _log.warning(
                    "could not release the lease %s: %s It ends by itself in at most %d s, and "
                    "until then no other batch can begin",
                    self._leases.place(self.number),
                    sentence(error),
                    LEASE_MILLIS // 1000,
                )

    def _write(self, expires_millis: int) -> bool:
        """Renew the lease until ``expires_millis``; return False if another holder took it over."""
        return self._leases.renew(replace(self._stored, expires_millis=expires_millis))

    def _renew_in_turns(self) -> None:
        while not self._ended.wait(LEASE_MILLIS / 1000 / _RENEWALS):
            try:
                self.require("a batch")
            except LockUnavailableError:
                return  # the commit of the batch raises it
            except LakeError as error:
                _log.warning(
                    "a batch could not renew its lease %s and will try again: %s",
                    self._leases.place(self.number),
                    error,
                )


def take_lease(leases: Leases, table: FilePlaces, environment: Environment) -> Lease:
    """Take the lease of a table; raise ``LockUnavailableError`` while another batch holds it."""
    now = environment.now_millis()
    newest = leases.newest()
    if newest is not None and newest.is_held(now):
        raise LockUnavailableError(_held_text(table, leases.place(newest.number), newest, now))
    number = 1 if newest is None else newest.number + 1
    stored = StoredLease(number, environment.new_id(), now + LEASE_MILLIS)
    if not leases.take(stored):
        raise LockUnavailableError(
            f"another batch on {table.uri} took the lease at the same moment. Only one batch can "
            "run at a time: retry after it has ended"
        )
    lease = Lease(leases, stored, environment)
    lease.keep_renewing()
    return lease


def _held_text(table: FilePlaces, place: str, held: StoredLease, now_millis: int) -> str:
    until, end = moment_text(held.expires_millis), f"`lake end-batch {table.argument}`"
    if held.expires_millis - now_millis <= LEASE_MILLIS + _CLOCKS_MILLIS:
        return (
            f"a batch runs on {table.uri}: it holds the lease {place} until {until} and may renew "
            "it. Only one batch can run at a time: retry after it has ended. If it hangs, "
            f"{end} ends it, and its commit is then refused"
        )
    return (
        f"no batch can begin on {table.uri}: the lease {place} of the owner {held.owner!r} ends at "
        f"{until}, but a batch takes a lease for {LEASE_MILLIS // 1000} s only. So the lease is "
        "forged, or a machine with a wrong clock has written it. If no batch runs, end the lease "
        f"with {end}; with --dry-run this command only shows the lease"
    )
