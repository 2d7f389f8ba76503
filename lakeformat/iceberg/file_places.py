# SPDX-License-Identifier: Apache-2.0
"""Finds the storage and the path of each file that metadata names by URI.

Files below the table's location are always read. Any other file is read only if the caller allows
its directory, because every program with write access can name any file in the metadata.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.storage.links import within
from lakeformat.storage.location import Location, location_of
from lakeformat.storage.shown import carries_secret, without_credentials

__all__ = ["FilePlaces", "places_of"]


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """The directory of a table, and the directories outside of it that the caller allows."""

    storage: Storage
    root: str
    location: Location
    """The location in the metadata: the URI of ``root``."""
    external_roots: ExternalRoots = NO_ROOTS
    catalog_name: str | None = None
    """The name of the table in its catalog; None without a catalog, and in a catalog of
    directories.
    """

    @property
    def argument(self) -> str:
        """The table as an argument of a command: its name in the catalog, else its URI."""
        return shlex.quote(self.catalog_name or self.uri)

    @property
    def warehouse_option(self) -> str:
        """The option ``-w`` that a command with the table's name needs, with a space before it.

        Its value is the directory above ``<database>/<table>``. The text is "" if the table has a
        name in a catalog, because no option is needed then.
        """
        if self.catalog_name is not None:
            return ""
        return f" -w {shlex.quote(self.uri.rsplit('/', 2)[0])}"

    @property
    def uri(self) -> str:
        """The URI of the table."""
        return self.storage.uri(self.root)

    def place(self, address: str) -> tuple[Storage, str]:
        """Return the storage and the path of a file that metadata names.

        Raise ``InvalidRequestError`` if the file is neither in the table's directory nor in an
        allowed one, and ``CorruptTableError`` if ``address`` is not a valid URI.
        """
        if (path := self.path_below(address)) is not None:
            return self.storage, path
        self.external_roots.require(address, self.uri, levels=1)
        return self.external_roots.place(address, self.storage, self.uri)

    def path_below(self, address: str) -> str | None:
        """Return the storage path of a file below the table's location.

        Return None for any other file. Raise ``CorruptTableError`` if ``address`` is not a valid
        URI.
        """
        try:
            found = location_of(address)
        except InvalidRequestError:
            advice = "restore the metadata files from a backup"
            if carries_secret(address):
                advice = (
                    "a URI must not contain credentials. If a table property such as "
                    f"'write.data.path' names it, change the property; otherwise {advice}"
                )
            raise CorruptTableError(
                f"{self.uri} names the file {without_credentials(address)!r}, which is neither an "
                f"absolute path nor a valid URI: {advice}"
            ) from None
        if not self.location.holds(found) or found == self.location:
            return None
        return "/".join((self.root, *found.segments[len(self.location.segments) :]))

    def read(self, address: str, limit: int = LARGE_FILE) -> bytes:
        """Return the content of a file that metadata names.

        Raise ``CorruptTableError`` if the file does not exist, and ``TooLargeError`` if it has more
        than ``limit`` bytes.
        """
        storage, path = self.place(address)
        try:
            return storage.read(path, limit)
        except NotFoundError:
            raise CorruptTableError(
                f"{self.uri} names the file {address}, which does not exist: if the table was "
                "dropped and created again, open the table again; if another program expired the "
                "snapshot, read a newer snapshot; otherwise restore the file from a backup"
            ) from None


def places_of(storage: Storage, root: str, location: str, roots: ExternalRoots) -> FilePlaces:
    """Return the places of the table at ``root``; ``location`` is the location in its metadata.

    Raise ``InvalidRequestError`` if ``location`` is not the URI of ``root``: then the table was
    moved or copied. Raise ``CorruptTableError`` if ``location`` is not a valid URI.
    """
    here = location_of(storage.uri(root), is_literal=False)
    shown = without_credentials(location)
    try:
        named = location_of(location)
    except InvalidRequestError:
        raise CorruptTableError(
            f"the metadata of {storage.uri(root)} has the location {shown!r}, which is neither "
            "an absolute path nor a valid URI: restore the metadata file from a backup"
        ) from None
    if named != here and named.real() != here.real():
        raise InvalidRequestError(
            f"{storage.uri(root)} holds an Iceberg table whose metadata names the location "
            f"{shown}. The table was moved or copied, and its metadata still names the files of "
            "the old place: open it there, or move it back. Spark's procedure rewrite_table_path "
            "writes metadata for a new place"
        )
    return FilePlaces(within(storage, root), root, named, roots)
