# SPDX-License-Identifier: Apache-2.0
"""Opens a storage from an address, and returns the path in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.storage.base import Storage
from lakeformat.storage.local import LocalStorage
from lakeformat.storage.location import HADOOP_SCHEMES, SCHEME
from lakeformat.storage.locked_creation import LockedCreation
from lakeformat.storage.memory import shared_memory_storage
from lakeformat.storage.object_address import OBJECT_SCHEMES, parse_object_address
from lakeformat.storage.object_client import open_client
from lakeformat.storage.object_store import ObjectStorage
from lakeformat.storage.process_lock import ProcessLock
from lakeformat.storage.shown import carries_secret, without_credentials
from lakeformat.storage.store_options import store_config

__all__ = ["open_storage", "resolve"]

# One storage per address and process: two storages of one address would not exclude each other.
_SINGLE_WRITER = ProcessLock()
_REMOTE = frozenset({"memory", *OBJECT_SCHEMES, *HADOOP_SCHEMES})


def open_storage(
    uri: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> tuple[Storage, str]:
    """Return the storage of a local path or a URI, and the path in it.

    Schemes: ``file``, ``memory``, ``s3``, ``s3a``, ``gs``, ``az``, ``abfs``, ``abfss``, ``hdfs``,
    ``viewfs``. A local path may be relative to the working directory or start with ``~``. ``file``
    and ``memory`` URIs are percent-decoded; other addresses are taken literally.

    ``docs/storage.md`` lists the options. An option that the storage does not have, and an invalid
    address, raise ``InvalidRequestError``; another scheme raises ``UnsupportedError``. Nothing is
    read or created.
    """
    address = _as_text(uri)
    if not address.strip() or "\0" in address:
        raise InvalidRequestError(
            f"{address!r} is not an address: give a path such as /data/warehouse, or a URI."
        )
    try:
        os.fsencode(address)
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"{address!r} is not an address: it contains half of a surrogate pair, which is not "
            "valid text. Type it again."
        ) from None
    match = SCHEME.match(address)
    prefix = address.partition(":")[0].lower()
    if match is None and ":" in address and prefix in _REMOTE:
        raise InvalidRequestError(
            f"{without_credentials(address)} has no slashes after the scheme: write {prefix}://…, "
            "or begin with ./ to mean a local path."
        )
    scheme = "file" if match is None else match[1].lower()
    storage, path, single_writer = _open(scheme, address, match is None, dict(options or {}))
    if single_writer:
        storage = LockedCreation(storage, _SINGLE_WRITER, storage.uri(""))
    return storage, path


def _open(
    scheme: str, address: str, is_plain_path: bool, options: Mapping[str, str]
) -> tuple[Storage, str, bool]:
    if scheme in OBJECT_SCHEMES:
        bucket, path = parse_object_address(address)
        config = store_config(options, bucket.kind)
        return ObjectStorage(open_client(bucket, config)), path, config.is_single_writer
    if scheme not in ("file", "memory", *HADOOP_SCHEMES):
        raise UnsupportedError(
            f"Cannot open {without_credentials(address)}: no storage for the scheme {scheme!r}."
            " Supported: a local path, file://, memory://, s3://, gs://, abfss:// and hdfs://."
        )
    single_writer = store_config(options, scheme).is_single_writer
    if scheme == "memory":
        return *_memory(address), single_writer
    if scheme in HADOOP_SCHEMES:
        from lakeformat.storage.hadoop import open_hadoop  # Arrow's file systems load slowly

        return *open_hadoop(address), single_writer
    path = _local_path(address) if is_plain_path else _file_uri_path(address)
    return LocalStorage(), path, single_writer


def _as_text(uri: object) -> str:
    text = os.fspath(uri) if isinstance(uri, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidRequestError(
            f"{uri!r} is not an address: give a str or a pathlib.Path such as '/data/warehouse'."
        )
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
                f"{without_credentials(address)} names a host, not a directory: write "
                f"file:///{host.rpartition('@')[2]}{slash}{below} for a local path."
            )
        rest = slash + below
    return _local_path(_decoded(rest, address) or "/")


def _memory(address: str) -> tuple[Storage, str]:
    _, _, rest = address.partition(":/")
    name, _, path = rest.removeprefix("/").partition("/")
    if carries_secret(address):
        raise InvalidRequestError(
            f"{without_credentials(address)} contains credentials: write memory://name/path."
        )
    if not name or not rest.startswith("/"):
        raise InvalidRequestError(f"{address} has no name: write memory://name/path.")
    return shared_memory_storage(_decoded(name, address)), _decoded(path, address).strip("/")


def _decoded(text: str, address: str) -> str:
    decoded = unquote(text)
    if "\0" in decoded:
        raise InvalidRequestError(f"{address} contains a null character: remove the %00.")
    return decoded


def resolve(uri: str, near: Storage) -> tuple[Storage, str]:
    """Return the storage of the file at the address ``uri``, and the path in that storage.

    If the address is on the storage ``near``, that storage is returned. Another bucket of the same
    service is opened with the options of ``near``, and any other storage without options.
    """
    inner = near
    while isinstance(inner, LockedCreation):
        inner = inner.inner
    scheme = uri.partition(":")[0].lower() if SCHEME.match(uri) else ""
    if isinstance(inner, ObjectStorage) and scheme in OBJECT_SCHEMES:
        address, path = parse_object_address(uri)
        mine = inner.client.address
        if (address.kind, address.bucket, address.host) == (mine.kind, mine.bucket, mine.host):
            return near, path
        if address.kind == mine.kind:
            return ObjectStorage(open_client(address, inner.client.config)), path
    # Metadata stores paths literally: a percent sign is part of a name.
    is_decoded = scheme in ("file", "memory")
    storage, path = open_storage(uri.replace("%", "%25") if is_decoded else uri)
    return (near if storage.uri("") == inner.uri("") else storage), path
