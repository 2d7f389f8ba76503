# SPDX-License-Identifier: Apache-2.0
"""External roots: directories that may contain files of a table, outside of its own directory.

Every program with write access can write a table's metadata, and name any file in it. So only the
caller, never the metadata, allows files outside the table's directory to be read, written or
deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.address import resolve
from lakeformat.storage.base import Storage
from lakeformat.storage.links import within
from lakeformat.storage.location import Location, location_of
from lakeformat.storage.shown import without_credentials

__all__ = ["EXTERNAL_ROOTS", "NO_ROOTS", "ExternalRoots"]

EXTERNAL_ROOTS = "external-roots"
"""The catalog option that allows directories outside of a table."""


@dataclass(frozen=True, slots=True)
class ExternalRoots:
    """The directories outside of a table that the caller allows; none by default."""

    locations: tuple[Location, ...] = ()

    @classmethod
    def of(cls, addresses: Iterable[str]) -> ExternalRoots:
        """Parse the addresses of a caller.

        Raise ``InvalidRequestError`` for an invalid address, and for the root of the file system.
        """
        if isinstance(addresses, str):
            raise InvalidRequestError(
                f"external_roots must be a list of addresses, got {addresses!r}: "
                f"write [{addresses!r}]"
            )
        return cls(tuple(_root(address) for address in addresses))

    def allow(self, location: Location) -> bool:
        """Return True if a location is an allowed root, or is below one."""
        return any(root.holds(location) for root in self.locations)

    def require(self, address: str, table: str, levels: int = 0) -> Location:
        """Return the location of an address that the metadata of ``table`` names.

        If no root allows the address, raise ``InvalidRequestError``. The message proposes to allow
        the address without its last ``levels`` segments; by default, the address itself.
        """
        shown = without_credentials(address)
        try:
            found = _location(address)
        except InvalidRequestError as reason:
            raise InvalidRequestError(
                f"{table} names the external path {shown!r}, which is not an address: {reason}"
            ) from None
        if not self.allow(found):
            root = without_credentials(str(found.above(levels)))
            raise InvalidRequestError(
                f"{table} names the external path {shown}, which no external root allows. Any "
                "program that writes the table can name any path. So files outside of the table's "
                "directory are read, written or deleted only below an external root. If the path "
                f"is right, allow it: set {EXTERNAL_ROOTS}={root} as an option of the catalog or "
                f"connection, or run lake --external-root {root}"
            )
        return found

    def place(self, address: str, near: Storage, table: str) -> tuple[Storage, str]:
        """Return the storage and the path of an allowed address in the metadata of ``table``.

        ``near`` is the storage of the table. Raise ``InvalidRequestError`` if the address is not
        allowed.
        """
        found = self.require(address, table)
        storage, path = resolve(address, near)
        [root, *_] = [each for each in self.locations if each.holds(found)]
        return within(storage, "/" + "/".join(root.segments)), path

    def require_no_table(
        self, address: str, near: Storage, table: str, below: Iterable[str] = ()
    ) -> None:
        """Raise ``InvalidRequestError`` if an external path is in the directory of a table.

        An allowed root may contain tables, so each directory from the root down to the files is
        checked. ``below`` are the names of the directories between the path and its files. A
        directory without a table is not checked again in this process.
        """
        below = tuple(below)
        found = self.require(address, table).below(below)
        unknown = [found.above(levels) for levels in range(len(found.segments))]
        unknown = [each for each in unknown if self.allow(each) and each not in _without_table]
        if not unknown:
            return
        storage, path = self.place(address, near, table)
        names = [*path.rstrip("/").split("/"), *below]
        for above in unknown:
            here = names[: len(names) - len(found.segments) + len(above.segments)]
            if storage.exists("/".join([*here, _SIGN_OF_TABLE])):
                raise InvalidRequestError(
                    f"{table} names the external path {address}, but {above} is the directory of "
                    "another table, which owns all files in it. Nothing was read or changed. If "
                    f"you chose this path, set the option 'data-file.external-paths' of {table} "
                    "to another directory; if not, find the program that set it"
                )
            _without_table.add(above)


_SIGN_OF_TABLE = "schema/schema-0"
_without_table: set[Location] = set()
"""Directories that were checked and contain no table: they are not checked again."""


def _root(address: object) -> Location:
    if not isinstance(address, str):
        raise InvalidRequestError(
            f"an external root must be a path or a URI, got {address!r}: write text such as "
            "'/data/files'"
        )
    found = location_of(address.strip(), is_literal=False)
    if not found.segments and found.service == "file://":
        raise InvalidRequestError(
            f"the external root {address} is the root of the file system: name a directory below it"
        )
    return found


_location = lru_cache(maxsize=1024)(location_of)

NO_ROOTS = ExternalRoots()
