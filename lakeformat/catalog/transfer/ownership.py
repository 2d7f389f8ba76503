# SPDX-License-Identifier: Apache-2.0
"""Writes a mark file into a directory of registered files. It names their table, so that two tables
never own the same file.

The table deletes a registered file when the snapshots that use it have expired. A second table with
the same file would then lose rows. Readers of plain directories ignore the mark file, because its
name begins with an underscore.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from posixpath import dirname

from lakeformat.errors import (
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import REGISTERED_MARK
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.storage import Storage
from lakeformat.tables.json_file import NO_JSON
from lakeformat.types.sentence import sentence

__all__ = ["MARK", "Owner", "claim", "parents", "refuse_owned", "withdraw"]

MARK = REGISTERED_MARK


@dataclass(frozen=True, slots=True)
class Owner:
    """The table that owns the files of a directory."""

    table: str
    """The URI of the table when it registered the files."""
    made_millis: int
    """The creation time of the table's first schema, in milliseconds since 1970-01-01 UTC.

    A rename does not change it. A later table with the same URI has another creation time.
    """

    @classmethod
    def of(cls, handle: TableHandle) -> Owner:
        """Return the table of a handle as owner."""
        first = read_schema(handle.storage, handle.layout, 0)
        return cls(handle.uri, first.time_millis)


def parents(root: str) -> Iterator[str]:
    """Yield all directories above a path, the nearest first."""
    directory = dirname(root)
    while directory.strip("/"):
        yield directory
        directory = dirname(directory)


def refuse_owned(storage: Storage, root: str, below: Sequence[str], owner: Owner | None) -> None:
    """Raise ``InvalidRequestError`` if a mark file names another owner than ``owner``.

    The mark files in ``root``, in all directories above it, and at the paths ``below`` are read. If
    ``owner`` is None, any mark file raises the error.
    """
    above = [f"{directory}/{MARK}" for directory in (root, *parents(root))]
    for path in dict.fromkeys((*above, *below)):
        try:
            found = storage.read(path)
        except NotFoundError:
            continue
        if owner is None or found != _content(owner):
            raise InvalidRequestError(
                f"files of {storage.uri(root)} are already registered in {_named(found)}, which "
                "deletes them once it no longer needs them: pass copy=True to copy them. If that "
                f"table no longer exists, delete this file, which has no rows: {storage.uri(path)}"
            )


def claim(storage: Storage, root: str, owner: Owner) -> bool:
    """Write the mark file of ``owner`` into a directory, and return True.

    Return False if the mark of ``owner`` exists already. The mark file of another owner in
    ``root``, or in a directory above it, raises ``InvalidRequestError``. A mark that cannot be
    written raises ``UnavailableError``.
    """
    path, content = f"{root}/{MARK}", _content(owner)
    try:
        made = storage.create(path, content)
    except LakeError as reason:
        if not _is_there(storage, path, content):
            raise UnavailableError(
                f"the mark {storage.uri(path)} cannot be written: {sentence(reason)} Without it, "
                "another table could register and delete the same files: pass copy=True to copy "
                "them"
            ) from reason
        made = True
    refuse_owned(storage, root, [], owner)  # another table may have marked it first
    return made


def withdraw(storage: Storage, root: str) -> None:
    """Delete the mark file of a directory. Call this only if none of its files is registered."""
    storage.delete(f"{root}/{MARK}")


def _is_there(storage: Storage, path: str, content: bytes) -> bool:
    try:
        return storage.read(path) == content
    except LakeError:
        return False


def _content(owner: Owner) -> bytes:
    return json.dumps(asdict(owner)).encode()


def _named(content: bytes) -> str:
    try:
        return f"the table {json.loads(content)['table']}"
    except (*NO_JSON, KeyError, TypeError):
        return "another table"
