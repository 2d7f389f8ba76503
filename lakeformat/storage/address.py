"""From an address a person writes to a storage and a path in it."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.storage.base import Storage
from lakeformat.storage.local import LocalStorage
from lakeformat.storage.memory import shared_memory_storage

__all__ = ["open_storage", "resolve"]

# Two letters at least, so that no drive letter counts; one slash is enough, as in Java's file:/x.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def open_storage(uri: str | os.PathLike[str]) -> tuple[Storage, str]:
    """The storage behind a local path, ``file://`` or ``memory://name`` URI, and the path in it.

    A local path may be relative to the working directory or start with ``~``, and is taken
    literally; a URI is percent-decoded. Nothing is read or made.
    """
    address = _as_text(uri)
    if not address.strip() or "\0" in address:
        raise InvalidRequestError(
            f"{address!r} is not an address: give a path such as /data/warehouse, or a URI."
        )
    match = _SCHEME.match(address)
    if match is None:
        return LocalStorage(), _local_path(address)
    scheme = match[1].lower()
    if scheme == "file":
        return LocalStorage(), _file_uri_path(address)
    if scheme == "memory":
        return _memory(address)
    raise UnsupportedError(
        f"Cannot open {address}: no storage for the scheme {scheme!r}."
        " Supported: a local path, file:// and memory://."
    )


def _as_text(uri: object) -> str:
    """Callers without a type checker may pass anything."""
    text = os.fspath(uri) if isinstance(uri, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidRequestError(f"{uri!r} is not an address: give a path or a URI")
    return text


def _local_path(address: str) -> str:
    expanded = os.path.expanduser(address)
    if address.startswith("~") and expanded == address:
        raise InvalidRequestError(
            f"{address} names no home directory of this machine; write ./{address} for a directory"
            " whose name starts with a tilde."
        )
    path = "/" + os.path.abspath(expanded).lstrip("/")
    if path == "/":
        raise InvalidRequestError(
            f"{address} is the root of the file system: choose a directory below it."
        )
    return path


def _file_uri_path(address: str) -> str:
    rest = address[len("file:") :]
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidRequestError(
                f"{address} names the host {host!r}, not a directory: write file:///{host}"
                f"{slash}{below} for a local path."
            )
        rest = slash + below
    return _local_path(_decoded(rest, address) or "/")


def _memory(address: str) -> tuple[Storage, str]:
    _, _, rest = address.partition(":/")
    name, _, path = rest.removeprefix("/").partition("/")
    if not name or not rest.startswith("/"):
        raise InvalidRequestError(f"{address} has no name: write memory://name/path.")
    return shared_memory_storage(_decoded(name, address)), _decoded(path, address).strip("/")


def _decoded(text: str, address: str) -> str:
    decoded = unquote(text)
    if "\0" in decoded:
        raise InvalidRequestError(f"{address} hides a null character: remove the %00.")
    return decoded


def resolve(uri: str, near: Storage) -> tuple[Storage, str]:
    """Where a file outside its table lies; the storage ``near`` it serves if it is of one kind."""
    # Metadata spells places out literally: a percent sign in it is part of a name.
    storage, path = open_storage(uri.replace("%", "%25") if _SCHEME.match(uri) else uri)
    return (near if storage.scheme == near.scheme == "file" else storage), path
