# SPDX-License-Identifier: Apache-2.0
"""Fences: files ``snapshot/.fence-<unique>``, each with the snapshots that a rollback removed.

A snapshot that a writer built on a removed snapshot would contain the removed changes again. So a
writer looks for its base snapshot right after publishing. If the base snapshot does not exist, the
writer searches the fences for it. A fence is written before its snapshots are deleted. It lists the
identities of the snapshots, because later commits take the numbers again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.errors import NotFoundError
from lakeformat.paimon.layout import FENCE, TableLayout
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.file_name_part import suffixed
from lakeformat.tables.json_file import decode_json_file

__all__ = [
    "ABANDONED_MILLIS",
    "KEPT_MILLIS",
    "Fence",
    "create_fence",
    "is_fenced",
    "read_fence",
    "remove_old_fences",
    "write_fence",
]

ABANDONED_MILLIS = 24 * 60 * 60 * 1000
"""The age in milliseconds at which an unfinished rollback counts as crashed."""
KEPT_MILLIS = 7 * 24 * 60 * 60 * 1000
"""The age in milliseconds at which a fence is deleted: longer than a commit should ever take."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The content of one fence: the snapshots that a rollback deletes, with a note for retries."""

    removed: frozenset[str]
    """The ``Snapshot.identity`` of each snapshot that the rollback deletes."""
    note: Mapping[str, Any] | None
    """The data for a retry; None in most fences.

    Only a rollback with a commit identity writes notes. The note in its first fence has the id of
    the target snapshot. When the rollback has finished, it writes a last fence, whose note also has
    the report of the rollback.
    """


def write_fence(
    storage: Storage, layout: TableLayout, unique: str, removed: Iterable[Snapshot]
) -> None:
    """Write the fence ``unique``, which lists ``removed``; the caller then deletes these snapshots.

    An existing fence of this name is replaced. A crash leaves the old or the new content, never a
    part: a damaged fence would stop every expiry.
    """
    path, content = layout.fence(unique), _content(removed)
    if not storage.create(path, content):
        storage.overwrite(path, content)


def create_fence(
    storage: Storage,
    layout: TableLayout,
    unique: str,
    removed: Iterable[Snapshot],
    note: Mapping[str, Any],
) -> bool:
    """Create the fence ``unique`` with a note for retries of the rollback; return True.

    Return False, and change nothing, if this fence exists.
    """
    return storage.create(layout.fence(unique), _content(removed, note))


def _content(removed: Iterable[Snapshot], note: Mapping[str, Any] | None = None) -> bytes:
    names = {"removed": [snapshot.identity for snapshot in removed]}
    return json.dumps({**names, **({} if note is None else {"rollback": note})}).encode()


def is_fenced(
    storage: Storage, layout: TableLayout, *snapshots: Snapshot, newer_than: int | None = None
) -> bool:
    """Return True if a rollback has removed one of ``snapshots``, or will remove it.

    A fence is ignored if its last change was before ``newer_than``, in epoch milliseconds;
    ``newer_than=None`` reads all fences.
    """
    wanted = {snapshot.identity for snapshot in snapshots}
    names = _names(storage, layout, newer_than)
    return any(not wanted.isdisjoint(_read(storage, layout, name)) for name in names)


def remove_old_fences(storage: Storage, layout: TableLayout, now_millis: int) -> None:
    """Delete the fences that are older than ``KEPT_MILLIS``."""
    for info in storage.list(layout.snapshot_directory):
        if suffixed(info.name, FENCE) and info.modified_millis < now_millis - KEPT_MILLIS:
            storage.delete(info.path)


def _names(storage: Storage, layout: TableLayout, newer_than: int | None) -> list[str]:
    found = (
        suffixed(info.name, FENCE)
        for info in storage.list(layout.snapshot_directory)
        if newer_than is None or info.modified_millis >= newer_than
    )
    return [name for name in found if name is not None]


def read_fence(storage: Storage, layout: TableLayout, unique: str) -> Fence | None:
    """Return the fence ``unique``; None if it does not exist.

    Raise CorruptTableError if the file is damaged.
    """
    path = layout.fence(unique)
    try:
        content = storage.read(path, LARGE_FILE)
    except NotFoundError:
        return None
    return decode_json_file(
        content,
        storage.uri(path),
        lambda members: Fence(_removed(members["removed"]), _note(members.get("rollback"))),
    )


def _removed(said: object) -> frozenset[str]:
    if not isinstance(said, list) or not all(isinstance(text, str) for text in said):
        raise TypeError(f"'removed' is {said!r}, not a list of snapshot identities")
    return frozenset(said)


def _note(said: dict[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the checked note of a fence; None if the fence has no note.

    Raise KeyError if the note has no target, and TypeError if the target is not a snapshot number.
    """
    if said is not None and type(said["target"]) is not int:
        raise TypeError(f"the target {said['target']!r} is not a snapshot number")
    return said


def _read(storage: Storage, layout: TableLayout, name: str) -> frozenset[str]:
    found = read_fence(storage, layout, name)
    return frozenset() if found is None else found.removed
