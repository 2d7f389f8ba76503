# SPDX-License-Identifier: Apache-2.0
"""The contract of the leases of a table: only the holder of the newest one may work.

Each holder takes the lease with the next number, which only one can do, and renews it. A lease that
is not renewed becomes stale, and the next holder takes its place. A holder that was paused for so
long notices it before its commit, because a newer lease exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["KeepsLeases", "Leases", "StoredLease"]


@dataclass(frozen=True, slots=True)
class StoredLease:
    """The lease with the highest number, as the catalog or the storage has it."""

    number: int
    owner: str
    """A unique id of the holder; "" if it is not readable right now."""
    expires_millis: int
    """The time at which the lease is stale; 0 if its holder has released it."""

    def is_held(self, now_millis: int) -> bool:
        """Return True if its holder may still work."""
        return now_millis < self.expires_millis


class Leases(Protocol):
    """The leases of one table: files beside it, or a row in its catalog."""

    def newest(self) -> StoredLease | None:
        """Return the lease with the highest number; None if there never was one."""
        ...

    def take(self, lease: StoredLease) -> bool:
        """Store a lease whose number follows that of ``newest``; return False if another holder has
        taken this number.

        Raise ``LockUnavailableError`` if it is unknown whether the lease is stored, and
        ``UnsupportedError`` if two holders could take one number.
        """
        ...

    def renew(self, lease: StoredLease) -> bool:
        """Store the new end of a lease; return False if another holder has the next one."""
        ...

    def place(self, number: int) -> str:
        """Return the address of a lease, for messages."""
        ...


@runtime_checkable
class KeepsLeases(Protocol):
    """Finds the metadata of a table, and keeps leases if its catalog can."""

    def leases(self, key: str) -> Leases | None:
        """Return the leases of the table with the id ``key``; None if the catalog keeps none."""
        ...
