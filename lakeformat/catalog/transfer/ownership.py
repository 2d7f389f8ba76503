"""Whose registered files are: a mark in their directory, so that no two tables remove them.

A file that lies where it lay belongs to one table, whose expiry removes it some day. Another
table that registered it, too, would lose its rows then. Readers of plain directories pass over
the mark, as over each name that begins with an underscore.
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
from lakeformat.paimon.metadata.json_file import NO_JSON
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.storage import Storage

__all__ = ["MARK", "Owner", "claim", "parents", "refuse_owned", "withdraw"]

MARK = REGISTERED_MARK


@dataclass(frozen=True, slots=True)
class Owner:
    """A table, told apart from others that have had or will have its place."""

    table: str
    """Where it was when it took the files."""
    made_millis: int
    """The time of its first schema, which no renaming changes."""

    @classmethod
    def of(cls, handle: TableHandle) -> Owner:
        """The table of a handle."""
        first = read_schema(handle.storage, handle.layout, 0)
        return cls(handle.uri, first.time_millis)


def parents(root: str) -> Iterator[str]:
    """Every directory a path lies in, the nearest first."""
    directory = dirname(root)
    while directory.strip("/"):
        yield directory
        directory = dirname(directory)


def refuse_owned(storage: Storage, root: str, below: Sequence[str], owner: Owner | None) -> None:
    """Refuse files which a mark gives to another table; ``below`` are the marks under ``root``."""
    above = [f"{directory}/{MARK}" for directory in (root, *parents(root))]
    for path in dict.fromkeys((*above, *below)):
        try:
            found = storage.read(path)
        except NotFoundError:
            continue
        if owner is None or found != _content(owner):
            raise InvalidRequestError(
                f"{storage.uri(root)} has files that are registered in the table "
                f"{_named(found)} already, which removes them once it needs them no more: say "
                "copy=True to leave them there. If that table is gone, remove "
                f"{storage.uri(path)}"
            )


def claim(storage: Storage, root: str, owner: Owner) -> bool:
    """Mark a directory as of a table; whether it was not before."""
    path, content = f"{root}/{MARK}", _content(owner)
    try:
        made = storage.create(path, content)
    except LakeError as reason:
        if not _is_there(storage, path, content):
            raise UnavailableError(
                f"{storage.uri(path)} cannot be written: {reason}. It says whose the files are, "
                "which a table removes some day: say copy=True to leave them alone"
            ) from reason
        made = True
    refuse_owned(storage, root, [], owner)  # somebody may have been first
    return made


def withdraw(storage: Storage, root: str) -> None:
    """Take back a mark, where nothing was registered after all."""
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
        return str(json.loads(content)["table"])
    except (*NO_JSON, KeyError, TypeError):
        return "of its mark"
