# SPDX-License-Identifier: Apache-2.0
"""Conditional writes to a bucket: the store decides which writer is first."""

from __future__ import annotations

from lakeformat.environment import Environment
from lakeformat.errors import AlreadyExistsError, UnavailableError
from lakeformat.storage.base import LARGE_FILE, SMALL_FILE, too_large
from lakeformat.storage.object_client import ObjectClient
from lakeformat.storage.object_errors import is_missing, is_taken, status_of

__all__ = ["ConditionalWrites"]

_CONFLICTS = 20
_PRECONDITION_FAILED = 412
_NO_SUCH_CALL = 501


class ConditionalWrites:
    """The requests to one bucket that write a file only if its name is free.

    The store must refuse a name that is taken; ``creation_proof.py`` tests if it does.
    """

    def __init__(self, client: ObjectClient, environment: Environment) -> None:
        self._client = client
        self._environment = environment

    def uri(self, path: str) -> str:
        return self._client.uri(path)

    def create(self, path: str, content: bytes) -> bool:
        """Write the file and return True; return False if the path is taken.

        If the store does not answer, raise ``UnavailableError`` and do not repeat the request: the
        store may refuse the repeat because the first request wrote the file. Multipart uploads are
        not used, because their condition would apply only to the last request.
        """
        client = self._client
        for turn in range(_CONFLICTS):
            with client.asking("publish", path):
                try:
                    client.api.put(client.once, path, content, mode="create", use_multipart=False)
                except Exception as error:
                    if not is_taken(error):
                        raise
                    if status_of(error) == _PRECONDITION_FAILED:
                        return False
                else:
                    return True
            # 409: the name is taken (Azure), or another request for it is under way (S3).
            if self.exists(path):
                return False
            self._pause(turn)
        raise UnavailableError(
            f"Cannot publish {self.uri(path)}: the store refused {_CONFLICTS} attempts because of "
            "concurrent requests for the same name, but no file has this name. Retry."
        )

    def put_new(self, path: str, content: bytes) -> None:
        """Write a new file, with retries.

        Raise ``AlreadyExistsError`` if ``path`` has other content. If the store has no conditional
        writes, raise it for any file at ``path``.
        """
        client = self._client
        with client.asking("write", path):
            try:
                client.api.put(client.patient, path, content, mode="create", use_multipart=False)
            except Exception as error:
                if status_of(error) == _NO_SUCH_CALL:
                    self._put_after_a_look(path, content)
                elif not is_taken(error):
                    raise
                # A retry is refused if its own first attempt succeeded: then the content is ours.
                elif not self.exists(path) or self.read(path, LARGE_FILE) != content:
                    raise self._taken(path) from None

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        with self._client.asking("read", path):
            found = self._client.api.get(self._client.patient, path)
            if (size := found.meta["size"]) > limit:
                raise too_large(self.uri(path), size, limit)
            return bytes(found.bytes())

    def exists(self, path: str) -> bool:
        client = self._client
        if not path:
            return False
        with client.asking("look for", path):
            try:
                client.api.head(client.patient, path)
            except FileNotFoundError as error:
                if not is_missing(error):
                    raise
                return False
        return True

    def delete(self, path: str) -> None:
        client = self._client
        with client.asking("delete", path):
            try:
                client.api.delete(client.patient, path)
            except FileNotFoundError as error:
                if not is_missing(error):
                    raise

    def _put_after_a_look(self, path: str, content: bytes) -> None:
        """Write the file if ``path`` does not exist, otherwise raise ``AlreadyExistsError``.

        This is for stores without conditional writes. Another writer may create the file between
        the check and the write.
        """
        if self.exists(path):
            raise self._taken(path)
        self._client.api.put(self._client.patient, path, content, use_multipart=False)

    def _taken(self, path: str) -> AlreadyExistsError:
        return AlreadyExistsError(
            f"Cannot create {self.uri(path)}: the name is taken. Choose another name."
        )

    def _pause(self, turn: int) -> None:
        longest = min(2.0, 0.02 * 2**turn)
        self._environment.sleep_seconds(longest * (0.5 + 0.5 * self._environment.random_fraction()))
