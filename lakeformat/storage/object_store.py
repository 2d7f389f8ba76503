# SPDX-License-Identifier: Apache-2.0
"""Files in a bucket of S3, Google Cloud Storage or Azure, published by conditional write.

A bucket has no real directories: a path counts as a directory while a file or a marker is below
it. Markers of other programs (empty objects whose names end in a slash) count too.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import AlreadyExistsError, UnavailableError
from lakeformat.storage.base import SMALL_FILE, FileInfo, refuse_root
from lakeformat.storage.conditional_writes import ConditionalWrites
from lakeformat.storage.creation_proof import require_proof
from lakeformat.storage.object_address import ObjectAddress
from lakeformat.storage.object_client import ObjectClient, open_client
from lakeformat.storage.object_errors import is_missing, is_unknown_upload
from lakeformat.storage.object_input import RangeStream
from lakeformat.storage.object_markers import (
    DIRECTORY_MARKER,
    delete_foreign_marker,
    delete_foreign_markers,
)
from lakeformat.storage.object_output import PART_BYTES, UploadStream
from lakeformat.storage.store_options import StoreConfig

__all__ = ["ObjectStorage"]

_PARALLEL_PARTS = 4


class ObjectStorage:
    """A storage whose paths are the keys of one bucket; any number of processes may share it."""

    def __init__(self, client: ObjectClient, *, environment: Environment = SYSTEM) -> None:
        self.client = client
        self._environment = environment
        self._raw = ConditionalWrites(client, environment)

    def __repr__(self) -> str:
        return f"ObjectStorage({self.uri('')})"

    def __reduce__(self) -> tuple[Callable[..., ObjectStorage], tuple[object, ...]]:
        """Pickle the options: another process opens its own client with them."""
        return _reopened, (self.client.address, self.client.config, self._environment)

    @property
    def scheme(self) -> str:
        """The scheme of the address: ``s3``, ``s3a``, ``gs``, ``az``, ``abfs`` or ``abfss``."""
        return self.client.address.scheme

    @property
    def longest_write_seconds(self) -> float:
        """The longest duration of ``overwrite`` with its retries, in seconds."""
        return self.client.longest_request_seconds

    def uri(self, path: str) -> str:
        """Return ``<scheme>://<bucket>/<path>`` with the path unchanged."""
        return self.client.uri(path)

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        """Return the content of a file; a file of more than ``limit`` bytes raises
        ``TooLargeError``.
        """
        return self._raw.read(_key(path), limit)

    def open_input(self, path: str) -> IO[bytes]:
        """Open an Arrow stream that fetches ranges; see ``RangeStream``.

        A read raises ``UnavailableError`` if the file was replaced since it was opened.
        """
        key, client = _key(path), self.client
        with client.asking("read", key):
            first = client.api.head(client.patient, key)

        def fetch(start: int, end: int) -> memoryview:
            with client.asking("read", key):
                found = client.api.get(client.patient, key, options={"range": (start, end)})
                content = found.bytes()
            if len(content) != end - start:
                raise UnavailableError(
                    f"Cannot read {self.uri(key)}: got {len(content)} bytes instead of"
                    f" {end - start}. Another program may have replaced the file. Read again."
                )
            if _differ(found.meta["e_tag"], first["e_tag"]):  # not If-Match: some stores ignore it
                raise UnavailableError(
                    f"Cannot read {self.uri(key)}: another program replaced the file while it was"
                    " read (its ETag has changed). Read again."
                )
            return memoryview(content)

        stream: IO[bytes] = pa.PythonFile(RangeStream(first["size"], fetch), mode="r")
        return stream

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        """Open a stream into a new file, which becomes visible when the block ends without error.

        A taken path raises ``AlreadyExistsError``, at the end of the block at the latest.
        """
        key = _key(path)
        upload = UploadStream(
            lambda content: self._raw.put_new(key, content),
            lambda parts: self._upload(key, parts),
        )
        try:
            with pa.PythonFile(upload, mode="w") as stream:
                yield stream
                upload.finish()
        except BaseException:
            upload.abort()
            raise

    def create(self, path: str, content: bytes) -> bool:
        """Publish a file by a conditional write; return False if the name is taken.

        The first call of a process tests that the store refuses to replace a file, and raises
        ``UnsupportedError`` otherwise.
        """
        self.prove_creation(path)
        return self._raw.create(_key(path), content)

    def prove_creation(self, path: str) -> None:
        """Raise ``UnsupportedError`` if the store lacks reliable conditional writes.

        The store is tested once per process.
        """
        require_proof(self._raw, self.client.identity, _key(path), self._environment.new_id)

    def overwrite(self, path: str, content: bytes) -> None:
        """Create a file, or replace it in one step."""
        key, client = _key(path), self.client
        with client.asking("write", key):
            client.api.put(client.patient, key, content, use_multipart=False)

    def exists(self, path: str) -> bool:
        """Return True if a file (not a directory) is at ``path``."""
        return self._raw.exists(_key(path))

    def list(self, path: str) -> builtins.list[FileInfo]:
        """Return the direct children of a directory, sorted by name; empty if it does not exist."""
        key, client = _key(path), self.client
        with client.asking("list", key):
            found = client.api.list_with_delimiter(client.patient, key or None)
        infos = {}
        for item in found["objects"]:
            # An object with the name of the directory itself is a marker of another program.
            if item["path"] != key:
                info = _file_info(path, item)
                infos[info.name] = info
        for prefix in found["common_prefixes"]:
            name = prefix.strip("/").rpartition("/")[2]
            infos[name] = FileInfo(f"{path}/{name}", name, True, 0, 0)
        infos.pop(DIRECTORY_MARKER, None)
        return [infos[name] for name in sorted(infos)]

    def make_directory(self, path: str) -> None:
        """Create an empty directory: a marker in it and in each missing parent."""
        key, missing = _key(path), []
        while key and not self.directory_exists(key):
            missing.append(key)
            key = key.rpartition("/")[0]
        for directory in reversed(missing):
            self.overwrite(f"{directory}/{DIRECTORY_MARKER}", b"")

    def keep_directory(self, path: str) -> None:
        """Write the marker of a directory if it is missing; see ``KeepsDirectories``."""
        marker = f"{path}/{DIRECTORY_MARKER}"
        if not self.exists(marker):
            self.overwrite(marker, b"")

    def directory_exists(self, path: str) -> bool:
        """Return True if a file or a marker is below ``path``."""
        key, client = _key(path), self.client
        with client.asking("list", key):
            try:
                return any(client.api.list(client.patient, key or None, chunk_size=1))
            except client.api.exceptions.InvalidPathError:
                return True  # an object is there, although the client cannot read its name

    def delete(self, path: str) -> None:
        """Delete one file; do nothing if it is missing."""
        self._raw.delete(_key(path))

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content; do nothing if it is missing."""
        refuse_root(path, self.uri(path))
        key, client = _key(path), self.client
        left: set[str] | None = None
        with client.asking("delete", key):
            while (found := self._below(key)) and found != left:
                client.api.delete(client.patient, sorted(found))
                left = found
        if self.directory_exists(key):
            delete_foreign_markers(client, key)
            if self.directory_exists(key):
                raise UnavailableError(
                    f"Cannot delete all of {self.uri(key)}: an object is still there. If another"
                    " program has just written it, retry. If it has content and its name ends in a"
                    " slash, delete it with the store's own tool."
                )

    def remove_empty_directory(self, path: str) -> bool:
        """Delete the markers of a directory and return True.

        Return False if a file, or a marker of a subdirectory, is below it. Only markers are
        deleted, so a file that is written meanwhile is not lost.

        See ``RemovesEmptyDirectories``.
        """
        refuse_root(path, self.uri(path))
        key, client = _key(path), self.client
        marker = f"{key}/{DIRECTORY_MARKER}"
        with client.asking("delete", key):
            if self._below(key) - {marker}:
                return False
            client.api.delete(client.patient, [marker])
            if self._below(key):
                return False
        if self.directory_exists(key):
            delete_foreign_marker(client, key)
            return not self.directory_exists(key)
        return True

    def _below(self, key: str) -> set[str]:
        found = self.client.api.list(self.client.patient, key or None).collect()
        return {item["path"] for item in found} - {key}

    def _upload(self, key: str, parts: Iterator[bytes]) -> None:
        if self.exists(key):
            raise AlreadyExistsError(
                f"Cannot create {self.uri(key)}: the name is taken. Choose another name."
            )
        client = self.client
        size: int | None = None

        def counted() -> Iterator[bytes]:
            nonlocal size
            total = 0
            for part in parts:
                total += len(part)
                yield part
            size = total

        with client.asking("write", key):
            try:
                client.api.put(
                    client.patient,
                    key,
                    counted(),
                    use_multipart=True,
                    chunk_size=PART_BYTES,
                    max_concurrency=_PARALLEL_PARTS,
                )
            except FileNotFoundError as error:
                # A retry of the last request is refused if its own first attempt succeeded.
                if not is_unknown_upload(error):
                    raise
                if size is None or self._size(key) != size:
                    raise UnavailableError(
                        f"Cannot write {self.uri(key)}: the store does not know the upload any"
                        " more: another program or a lifecycle rule has aborted it. This"
                        " content was not written. Retry."
                    ) from None

    def _size(self, key: str) -> int | None:
        """Return the size of a file in bytes; None if it is missing."""
        client = self.client
        try:
            size: int = client.api.head(client.patient, key)["size"]
        except FileNotFoundError as error:
            if not is_missing(error):
                raise
            return None
        return size


def _file_info(directory: str, item: Any) -> FileInfo:
    name = item["path"].rpartition("/")[2]
    modified = int(item["last_modified"].timestamp() * 1000)
    return FileInfo(f"{directory}/{name}", name, False, item["size"], modified, item["e_tag"])


def _differ(one: str | None, other: str | None) -> bool:
    """Return True if two ETags are of different contents; False if an answer had no ETag.

    Answers to GET and HEAD may write one ETag in two ways: proxies add ``W/`` to some.
    """
    tags = {tag.removeprefix("W/").strip('"') for tag in (one, other) if tag is not None}
    return len(tags) > 1


def _key(path: str) -> str:
    # The root of a bucket is "", so callers that join with a slash pass "/orders" for "orders".
    return path.strip("/")


def _reopened(
    address: ObjectAddress, config: StoreConfig, environment: Environment
) -> ObjectStorage:
    return ObjectStorage(open_client(address, config), environment=environment)
