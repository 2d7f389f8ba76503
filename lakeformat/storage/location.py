# SPDX-License-Identifier: Apache-2.0
"""Compares addresses: all spellings of one address have equal locations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from lakeformat.errors import InvalidRequestError
from lakeformat.storage.object_address import OBJECT_SCHEMES, parse_object_address
from lakeformat.storage.shown import without_credentials

__all__ = ["HADOOP_SCHEMES", "SCHEME", "Location", "location_of", "one_spelling"]

HADOOP_SCHEMES = frozenset({"hdfs", "viewfs"})

# At least two letters, so that a drive letter does not count; one slash is enough, as in Java's
# file:/x.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")

_AZURE = "azure://"
_LOCAL_HOSTS = ("", "localhost")


@dataclass(frozen=True, slots=True)
class Location:
    """A directory or file: its service, and the names in its path."""

    service: str
    """The scheme with the bucket, host or container; ``s3a://bucket`` becomes ``s3://bucket``."""
    account: str
    """The account of an Azure address; "" if the address does not name the account."""
    segments: tuple[str, ...]

    def __str__(self) -> str:
        service = self.service
        if service.startswith(_AZURE):
            bucket = service.removeprefix(_AZURE)
            service = f"abfss://{bucket}@{self.account}" if self.account else f"az://{bucket}"
        return f"{service}/{'/'.join(self.segments)}"

    def holds(self, other: Location) -> bool:
        """Return True if ``other`` is this location, or is below it."""
        count = len(self.segments)
        return (
            other.segments[:count] == self.segments
            and self.service == other.service
            and self.account == other.account
        )

    def overlaps(self, other: Location) -> bool:
        """Return True if one location may contain the other.

        A location that names no account may be in any account.
        """
        if self.service != other.service:
            return False
        if self.account and other.account and self.account != other.account:
            return False
        count = min(len(self.segments), len(other.segments))
        return self.segments[:count] == other.segments[:count]

    def above(self, count: int) -> Location:
        """Return the location ``count`` levels further up."""
        return Location(self.service, self.account, self.segments[: len(self.segments) - count])

    def below(self, names: Iterable[str]) -> Location:
        """Return the location with ``names`` appended."""
        return Location(self.service, self.account, (*self.segments, *names))

    def real(self) -> Location:
        """Return the location after following the links of the local file system."""
        if self.service != "file://":
            return self
        path = os.path.realpath("/" + "/".join(self.segments))
        return Location(self.service, self.account, tuple(path.strip("/").split("/")))


def location_of(address: str, *, is_literal: bool = True) -> Location:
    """Return the location of an address.

    Raise ``InvalidRequestError`` for an address that is empty, relative or invalid. Metadata stores
    addresses literally (``is_literal``). In an address from a caller (``is_literal=False``), a
    percent sign of a ``file`` or ``memory`` URI begins an escape, and a local path may be relative.
    """
    if not address.strip() or "\0" in address:
        raise InvalidRequestError(f"{address!r} is not an address: write a path or a URI.")
    match = SCHEME.match(address)
    scheme = "file" if match is None else match[1].lower()
    if scheme in OBJECT_SCHEMES:
        bucket, path = parse_object_address(address)
        return Location(f"{bucket.kind}://{bucket.bucket}", bucket.host.lower(), _named(path))
    if match is None:
        path = address if is_literal else os.path.abspath(os.path.expanduser(address))
        if not path.startswith("/"):
            raise InvalidRequestError(f"{address!r} is a relative path: write the whole address.")
        return Location("file://", "", _resolved(path))
    rest = address[len(scheme) + 1 :]
    if not is_literal and scheme in ("file", "memory"):
        rest = unquote(rest)
    authority, path = "", rest
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    if scheme != "file":
        host = authority if scheme == "memory" else authority.lower()
        return Location(f"{scheme}://{host}", "", _resolved(path))
    if authority not in _LOCAL_HOSTS:
        raise InvalidRequestError(
            f"{without_credentials(address)} names a host, not a directory: write file:///path."
        )
    return Location("file://", "", _resolved(path))


def one_spelling(address: str) -> str:
    """Return the normal spelling of an address.

    An invalid or relative address is returned unchanged.
    """
    try:
        return str(location_of(address))
    except InvalidRequestError:
        return address


def _named(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in path.split("/") if segment)


def _resolved(path: str) -> tuple[str, ...]:
    """Return the names of a path without empty names, and with ``.`` and ``..`` resolved."""
    found: list[str] = []
    for segment in _named(path):
        if segment == "..":
            del found[-1:]
        elif segment != ".":
            found.append(segment)
    return tuple(found)
