# SPDX-License-Identifier: Apache-2.0
"""Staged results: commit messages in a file below the table, to be published later.

A staged result is a JSON file ``staged/staged-<name>``. Its name is derived from a commit identity,
so that a retry finds it, or is unique. The publishing job first writes ``staged/claim-<name>``. No
other engine uses the directory.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, NotFoundError, UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.file_name_part import suffixed

__all__ = [
    "StagedResult",
    "claim",
    "claimant",
    "delete_staged",
    "no_such_result",
    "read_staged",
    "read_staged_if_present",
    "release",
    "restore_staged",
    "staged_name",
    "staged_names",
    "write_staged",
]

_PREFIX = "staged-"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedResult:
    """The unpublished files that one run has staged."""

    name: str
    created_millis: int
    messages: tuple[CommitMessage, ...]

    @property
    def rows(self) -> int:
        """The number of rows in the new files."""
        return sum(file.row_count for each in self.messages for file in each.new_files)

    @property
    def files(self) -> int:
        """The number of new files."""
        return sum(len(each.new_files) for each in self.messages)

    @property
    def bytes(self) -> int:
        """The size of the new files."""
        return sum(file.file_size for each in self.messages for file in each.new_files)


def staged_name(user: str, identifier: int) -> str:
    """Return the name of the staged result for a commit identity."""
    digest = hashlib.blake2b(json.dumps([user, identifier]).encode(), digest_size=16)
    return digest.hexdigest()


def staged_names(storage: Storage, layout: TableLayout) -> list[str]:
    """Return the names of all staged results of a branch."""
    found = (
        suffixed(info.name, _PREFIX)
        for info in storage.list(layout.staged_directory)
        if not info.is_directory
    )
    return [name for name in found if name is not None]


def read_staged(storage: Storage, layout: TableLayout, name: str) -> StagedResult:
    """Return a staged result by its name."""
    found = read_staged_if_present(storage, layout, name)
    if found is None:
        raise no_such_result(storage, layout, name)
    return found


def no_such_result(storage: Storage, layout: TableLayout, name: str) -> NotFoundError:
    """Return the error about a name without a staged result."""
    return NotFoundError(
        f"{storage.uri(layout.staged(name))} is not a staged result: it was published under "
        "another identity, discarded, or never staged. table.staged.list() returns the results "
        "that can be published"
    )


def read_staged_if_present(storage: Storage, layout: TableLayout, name: str) -> StagedResult | None:
    """Return a staged result; None if the name has none."""
    path = layout.staged(name)
    try:
        content = storage.read(path, LARGE_FILE)
    except NotFoundError:
        return None
    try:
        record = json.loads(content)
        if record["version"] != _VERSION:
            raise ValueError(f"its version is {record['version']}, not {_VERSION}")
        messages = [base64.b64decode(each, validate=True) for each in record["messages"]]
        created = int(record["createdMillis"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as reason:
        raise InvalidRequestError(
            f"{storage.uri(path)} is not a staged result of this version: {reason}; stage and "
            "commit with the same version of the library"
        ) from None
    return StagedResult(
        name=name,
        created_millis=created,
        messages=tuple(CommitMessage.from_bytes(each) for each in messages),
    )


def write_staged(
    storage: Storage,
    layout: TableLayout,
    name: str,
    messages: Sequence[CommitMessage],
    environment: Environment,
) -> bool:
    """Write a staged result; return False and change nothing if the name exists."""
    content = _content(environment.now_millis(), messages)
    path = layout.staged(name)
    try:
        return storage.create(path, content)
    except UnavailableError:
        # The answer was lost: the content of the file shows who wrote it.
        if storage.exists(path) and storage.read(path, LARGE_FILE) == content:
            return True
        raise


def restore_staged(storage: Storage, layout: TableLayout, result: StagedResult) -> None:
    """Write a deleted staged result again, unchanged."""
    storage.create(layout.staged(result.name), _content(result.created_millis, result.messages))


def delete_staged(
    storage: Storage, layout: TableLayout, name: str, *, with_claim: bool = True
) -> None:
    """Delete a staged result and then its claim; its data files are kept."""
    storage.delete(layout.staged(name))
    if with_claim:
        release(storage, layout, name)


def claim(storage: Storage, layout: TableLayout, name: str, user: str) -> bool:
    """Claim a result for publication; return False if it is claimed already."""
    return storage.create(layout.staged_claim(name), user.encode("utf-8"))


def claimant(storage: Storage, layout: TableLayout, name: str) -> str | None:
    """Return the job that is publishing a result or was interrupted; None if there is none."""
    try:
        return storage.read(layout.staged_claim(name)).decode("utf-8", "replace")
    except NotFoundError:
        return None


def release(storage: Storage, layout: TableLayout, name: str) -> None:
    """Delete the claim of a result."""
    storage.delete(layout.staged_claim(name))


def _content(created_millis: int, messages: Sequence[CommitMessage]) -> bytes:
    record: dict[str, Any] = {
        "version": _VERSION,
        "createdMillis": created_millis,
        "messages": [base64.b64encode(each.to_bytes()).decode("ascii") for each in messages],
    }
    return json.dumps(record).encode("utf-8")
