# SPDX-License-Identifier: Apache-2.0
"""The files of staged results: each stores commit messages until another job publishes them.

A staged result is a JSON file ``staged-<name>``. With a commit identity its name is derived from
the identity, so that a retry finds the file. Otherwise the name is unique.

Each publication first writes its own file ``claim-<name>.<id>``, and then looks for a discard. Each
discard first writes ``discard-<name>.<id>``, and then looks for a claim. So a publication and a
discard at the same time never both continue.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE, FileInfo
from lakeformat.tables.create_once import create_or_find
from lakeformat.tables.file_name_part import check_file_name_part, suffixed

__all__ = ["StagedFiles", "StagedMessage", "StagedResult", "staged_name"]

_PREFIX, _CLAIM, _DISCARD = "staged-", "claim-", "discard-"
_VERSION = 1
_CLAIM_MILLIS = 24 * 60 * 60 * 1000
"""The age in milliseconds, one day, after which a claim is ignored."""


class StagedMessage(Protocol):
    """A commit message of any format."""

    def to_bytes(self) -> bytes:
        """Return the message as bytes."""


MessageT = TypeVar("MessageT", bound=StagedMessage)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedResult(Generic[MessageT]):
    """Files that one job has written, and that another job can publish."""

    name: str
    created_millis: int
    messages: tuple[MessageT, ...]
    rows: int
    """The number of rows in the new files."""
    files: int
    """The number of new files. In a Paimon table, changelog and index files are not counted."""
    bytes: int
    """The total size of the counted files in bytes."""


def staged_name(user: str, identifier: int) -> str:
    """Return the name of the staged result that belongs to a commit identity: a hash of the
    identity.
    """
    digest = hashlib.blake2b(json.dumps([user, identifier]).encode(), digest_size=16)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class StagedFiles(Generic[MessageT]):
    """The staged results in one directory."""

    storage: Storage
    directory: str
    read_message: Callable[[bytes], MessageT]
    sizes: Callable[[MessageT], Iterable[tuple[int, int]]]
    """Returns the number of rows and the size in bytes of each new file of a message."""
    table_directory: str | None = None
    """The directory of the table. If it exists, a missing ``directory`` is created.

    None if ``directory`` is directly inside the directory of a table or branch: then
    ``Storage.create`` itself creates a missing ``directory``.
    """

    def names(self) -> list[str]:
        """Return the names of all staged results."""
        found = (
            suffixed(info.name, _PREFIX)
            for info in self.storage.list(self.directory)
            if not info.is_directory
        )
        return [name for name in found if name is not None]

    def path(self, name: str) -> str:
        """Return the path of a staged result."""
        return self._path(_PREFIX, name)

    def address(self, name: str) -> str:
        """Return the URI of the staged result with this name."""
        return self.storage.uri(self.path(name))

    def named(self, address: str) -> str | None:
        """Return the name of the staged result at a URI; None if no staged result can have this
        URI.
        """
        return suffixed(address.rpartition("/")[2], _PREFIX)

    def read(self, name: str) -> StagedResult[MessageT]:
        """Return a staged result by its name; raise ``NotFoundError`` if it does not exist."""
        found = self.read_if_present(name)
        if found is None:
            raise self.missing(name)
        return found

    def missing(self, name: str) -> NotFoundError:
        """Return the error for a name without a staged result."""
        return NotFoundError(
            f"{self.address(name)} is not a staged result: it was already published, "
            "discarded, or never staged. table.staged.list() returns the results that "
            "can be published"
        )

    def read_if_present(self, name: str) -> StagedResult[MessageT] | None:
        """Return a staged result by its name; None if it does not exist.

        A file that this version cannot read raises ``InvalidRequestError``.
        """
        path = self.path(name)
        try:
            content = self.storage.read(path, LARGE_FILE)
        except NotFoundError:
            return None
        try:
            record = json.loads(content)
            if record["version"] != _VERSION:
                raise ValueError(f"its version is {record['version']}, not {_VERSION}")
            encoded = [base64.b64decode(each, validate=True) for each in record["messages"]]
            created = int(record["createdMillis"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else error
            raise InvalidRequestError(
                f"{self.storage.uri(path)} is not a staged result of this version: {reason}; "
                "stage and commit with the same version of the library"
            ) from None
        messages = tuple(self.read_message(each) for each in encoded)
        sizes = [each for message in messages for each in self.sizes(message)]
        return StagedResult(
            name=name,
            created_millis=created,
            messages=messages,
            rows=sum(rows for rows, _ in sizes),
            files=len(sizes),
            bytes=sum(size for _, size in sizes),
        )

    def write(self, name: str, messages: Sequence[MessageT], environment: Environment) -> bool:
        """Write a staged result; if its name exists, return False and change nothing."""
        content = _content(environment.now_millis(), messages)
        return self._create(self.path(name), content)

    def delete(self, name: str) -> None:
        """Delete a staged result, then its claims and the marks of its discards. Its data files are
        kept.
        """
        self.storage.delete(self.path(name))
        for each in (*self._beside(_CLAIM, name), *self._beside(_DISCARD, name)):
            self.release(each.path)

    def claim(self, name: str, user: str, environment: Environment) -> str:
        """Write the claim of a publication, and return the path of the claim.

        Each publication of a result has its own claim. So when one publication ends, the claim of
        another one still protects the files. ``user`` is the commit user that publishes.
        """
        return self._mark(_CLAIM, name, user, environment)

    def claimant(self, name: str, now_millis: int) -> str | None:
        """Return the commit user of a publication that began in the last 24 hours and has not
        ended.

        Return None without such a publication; the files of the result may then be discarded.
        """
        for claim in self._beside(_CLAIM, name):
            if claim.modified_millis >= now_millis - _CLAIM_MILLIS:
                with suppress(NotFoundError):
                    return self.storage.read(claim.path).decode("utf-8", "replace")
        return None

    def begin_discard(self, name: str, environment: Environment) -> str:
        """Mark that a discard of a result has begun, so that no publication begins; return the path
        of the mark.
        """
        return self._mark(_DISCARD, name, "", environment)

    def is_discarded(self, name: str) -> bool:
        """Return True if a discard of a result is running or was interrupted."""
        return bool(self._beside(_DISCARD, name))

    def release(self, path: str) -> None:
        """Delete a claim, or the mark of a discard."""
        self.storage.delete(path)

    def _mark(self, prefix: str, name: str, content: str, environment: Environment) -> str:
        path = f"{self._path(prefix, name)}.{environment.new_id()}"
        self._create(path, content.encode("utf-8"))
        return path

    def _beside(self, prefix: str, name: str) -> list[FileInfo]:
        """Return the files of a result with the prefix ``prefix``: its claims or its discards.

        Version 0.1 wrote a claim without an id, ``claim-<name>``, which is included.
        """
        plain = f"{prefix}{name}"
        files = (info for info in self.storage.list(self.directory) if not info.is_directory)
        return [each for each in files if each.name.partition(".")[0] == plain]

    def _create(self, path: str, content: bytes) -> bool:
        """Create a file and return True, or return False if the file exists.

        The directory is created if it is missing. Raise ``NotFoundError`` if the table was dropped
        or renamed meanwhile.
        """
        try:
            return create_or_find(self.storage, path, content)
        except NotFoundError:
            table = self.table_directory
            if table is None or not self.storage.directory_exists(table):
                raise
        self.storage.make_directory(self.directory)
        return create_or_find(self.storage, path, content)

    def _path(self, prefix: str, name: str) -> str:
        check_file_name_part("staged result", name)
        return f"{self.directory}/{prefix}{name}"


def _content(created_millis: int, messages: Sequence[StagedMessage]) -> bytes:
    record: dict[str, Any] = {
        "version": _VERSION,
        "createdMillis": created_millis,
        "messages": [base64.b64encode(each.to_bytes()).decode("ascii") for each in messages],
    }
    return json.dumps(record).encode("utf-8")
