# SPDX-License-Identifier: Apache-2.0
"""The contract of the leases of a table: only the holder of the newest lease may work.

A holder takes the lease with the next number, and renews it. Only one holder can take a number. A
lease that is not renewed becomes stale, and another holder takes the next lease.
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
    """A unique id of the holder; "" if the id cannot be read right now."""
    expires_millis: int
    """The time at which the lease becomes stale, in epoch milliseconds; 0 if its holder has
    released it.
    """

    def is_held(self, now_millis: int) -> bool:
        """Return True if the holder of the lease may still work."""
        return now_millis < self.expires_millis


class Leases(Protocol):
    """The leases of one table: files beside the table, or a row in its catalog."""

    def newest(self) -> StoredLease | None:
        """Return the lease with the highest number; None if no lease was ever taken."""
        ...

    def take(self, lease: StoredLease) -> bool:
        """Store a lease whose number follows the number of ``newest``, and return True.

        Return False if another holder has taken this number. Raise ``LockUnavailableError`` if the
        answer is lost, and ``UnsupportedError`` if the storage would let two holders take one
        number.
        """
        ...

    def renew(self, lease: StoredLease) -> bool:
        """Store the new ``expires_millis`` of a lease, and return True.

        Return False if another holder has the next lease.
        """
        ...

    def place(self, number: int) -> str:
        """Return the address of a lease, for messages."""
        ...


@runtime_checkable
class KeepsLeases(Protocol):
    """Gives access to the leases that a catalog stores. A metastore implements this protocol, and
    so does the pointer to the metadata of a table.
    """

    def leases(self, key: str) -> Leases | None:
        """Return the leases of the table with the id ``key``.

        Return None if the catalog does not store leases.
        """
        ...
