# SPDX-License-Identifier: Apache-2.0
"""Leases as files below ``_lake/lease`` in the base store, for catalogs that keep none.

The file with the highest number is the lease. Only one writer can create it.
"""

from __future__ import annotations

import json
from contextlib import suppress

from lakeformat.errors import (
    CommitOutcomeUnknownError,
    LakeError,
    LockUnavailableError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.storage import Storage
from lakeformat.storage.base import vanished
from lakeformat.tables.create_once import create_once
from lakeformat.tables.file_name_part import suffixed
from lakeformat.tables.json_file import NO_JSON
from lakeformat.tables.lease import StoredLease

__all__ = ["LeaseFiles"]

_PREFIX = "lease-"
_MOST_DIGITS = 18


class LeaseFiles:
    """The leases in one directory.

    A lease is stale if it was not renewed for ``lifetime_millis`` milliseconds.
    """

    def __init__(self, storage: Storage, directory: str, lifetime_millis: int) -> None:
        self._storage = storage
        self._directory = directory
        self._lifetime_millis = lifetime_millis

    def newest(self) -> StoredLease | None:
        """Return the lease with the highest number; None if there is none.

        The owner is "" while a renewal writes the file, or after a renewal was interrupted.
        """
        found = self._numbered()
        if not found:
            return None
        number = max(found)
        try:
            members = json.loads(self._storage.read(self._path(number)))
            return StoredLease(number, str(members["owner"]), int(members["expiresMillis"]))
        except (*NO_JSON, KeyError, TypeError, ValueError, OverflowError, NotFoundError):
            # A renewal writes the file right now, or was interrupted.
            return StoredLease(number, "", found[number] + self._lifetime_millis)

    def take(self, lease: StoredLease) -> bool:
        """Create the file of a lease, and delete the files of older leases.

        Return False if another writer has created the file. Raise ``LockUnavailableError`` if the
        storage does not confirm the creation, and ``UnsupportedError`` if it cannot ensure that
        only one writer creates a file.
        """
        if not self._create(lease):
            return False
        with suppress(LakeError):  # they have no effect any more
            for each in self._numbered():
                if each < lease.number:
                    self._storage.delete(self._path(each))
        return True

    def renew(self, lease: StoredLease) -> bool:
        """Write the file of a lease again.

        Return False if this is no longer the newest lease, or if another holder has a lease with
        the same number, because the table was created again.
        """
        newest = self.newest()
        if newest is None or newest.number != lease.number:
            return False
        if newest.owner not in ("", lease.owner):
            return False
        self._storage.overwrite(self._path(lease.number), _content(lease))
        return True

    def place(self, number: int) -> str:
        """Return the address of the file of a lease."""
        return self._storage.uri(self._path(number))

    def _create(self, lease: StoredLease) -> bool:
        """Create the lease file, and its directory if missing; return False if the file exists.

        Raise the errors of ``take``, and ``NotFoundError`` if the table was dropped meanwhile.
        """
        storage, path = self._storage, self._path(lease.number)
        try:
            if not storage.directory_exists(self._directory):
                table = self._directory.rsplit("/", 2)[0]
                if not storage.directory_exists(table):
                    raise vanished(storage.uri(path))
                storage.make_directory(self._directory)
            return create_once(storage, path, _content(lease))
        except CommitOutcomeUnknownError:
            raise LockUnavailableError(
                f"the storage did not confirm that it wrote the lease {storage.uri(path)}. Nothing "
                "was published: retry. If the lease was written, a retry fails until the lease "
                f"ends, after at most {self._lifetime_millis // 1000} s"
            ) from None
        except UnsupportedError as error:
            from lakeformat.types.sentence import sentence  # only for a message

            raise UnsupportedError(
                f"no batch began, because its lease {storage.uri(path)} must be a file that only "
                f"one writer can create: {sentence(error)} In a SQL catalog of Iceberg tables, "
                "which keeps leases in its database, batches run on any storage"
            ) from None

    def _numbered(self) -> dict[int, int]:
        """Return the time of the last change of each lease, in epoch milliseconds, by its
        number.
        """
        listed = self._storage.list(self._directory)
        found = ((suffixed(each.name, _PREFIX), each) for each in listed)
        return {
            int(number): each.modified_millis
            for number, each in found
            if number is not None
            and number.isascii()
            and number.isdecimal()
            and len(number) <= _MOST_DIGITS
        }

    def _path(self, number: int) -> str:
        return f"{self._directory}/{_PREFIX}{number:010}"


def _content(lease: StoredLease) -> bytes:
    return json.dumps({"owner": lease.owner, "expiresMillis": lease.expires_millis}).encode()
