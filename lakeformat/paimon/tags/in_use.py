# SPDX-License-Identifier: Apache-2.0
"""Finds out if a tag is in use: by branches that began at its snapshot, or by a rollback."""

from __future__ import annotations

import re

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.deletion import protection
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import Tag, read_tags

__all__ = [
    "branches_from",
    "is_over",
    "is_protection",
    "protection_name",
    "require_found_again",
    "require_unneeded",
    "tag_made_millis",
]

_PROTECTION = "rollback-to-as-latest-"
_CLOCK_SKEW_MILLIS = 10 * 60 * 1000
"""The largest assumed difference between the clocks of writers and of the storage, in
milliseconds.
"""
_PROTECTION_NAME = re.compile(rf"{_PROTECTION}\d+-.+")


def protection_name(snapshot_id: int, unique: str) -> str:
    """Return the name of the tag that protects restored files of a rollback, as other engines name
    it.
    """
    return f"{_PROTECTION}{snapshot_id}-{unique}"


def is_protection(name: str) -> bool:
    """Return True for the name of a tag that protects the files of a rollback."""
    return _PROTECTION_NAME.fullmatch(name) is not None


def branches_from(handle: TableHandle, snapshot: Snapshot) -> list[str]:
    """Return the names of other branches that have this snapshot, or a tag of it."""
    storage, found = handle.storage, []
    for branch in branches(storage, handle.layout):
        if branch.name == handle.layout.branch:
            continue
        layout = handle.layout.on_branch(branch.name)
        own = read_snapshot_if_present(storage, layout, snapshot.id)
        if own == snapshot or any(tag.snapshot == snapshot for tag in read_tags(storage, layout)):
            found.append(branch.name)
    return found


def _require_unused(handle: TableHandle, tag: Tag, doing: str) -> None:
    """Raise InvalidRequestError if a branch began at the tag's snapshot.

    The message uses ``doing``, such as ``deleting``.
    """
    names = branches_from(handle, tag.snapshot)
    if names:
        noun = "branch" if len(names) == 1 else "branches"
        branches_text = f"{noun} {', '.join(map(repr, names))}"
        raise InvalidRequestError(
            f"tag {tag.name!r} of {handle.uri} is in use: {branches_text} "
            f"began at its snapshot {tag.snapshot.id}. The expiry of other engines keeps the "
            f"files of a branch only while that tag exists. Delete the {noun} before "
            f"{doing} the tag. Or pass force=True if no other engine expires this table"
        )


def require_unneeded(handle: TableHandle, tag: Tag, doing: str) -> None:
    """Raise InvalidRequestError if a branch began at the tag's snapshot, or a rollback needs the
    tag.

    The message uses ``doing``, such as ``deleting``.
    """
    _require_unused(handle, tag, doing)
    if is_protection(tag.name) and not is_over(handle, tag):
        raise InvalidRequestError(
            f"tag {tag.name!r} of {handle.uri} is in use: a rollback restored files of its "
            f"snapshot {tag.snapshot.id}, and the expiry of other engines keeps these files only "
            "while the tag exists. `tags.expire` (lake tag expire) deletes the tag once the "
            "snapshots before that rollback have expired. Pass force=True if no other engine "
            "expires this table"
        )


def require_found_again(handle: TableHandle, tag: Tag) -> None:
    """Raise InvalidRequestError if the expiry of this library needs the tag to protect a rollback.

    Callers make this check even with ``force``.
    """
    if not is_protection(tag.name) or is_over(handle, tag):
        return
    most = protection.LATER_SNAPSHOTS
    ids = snapshot_ids(handle.storage, handle.layout)
    count = len({*ids, *changelog_ids(handle.storage, handle.layout)})
    if count > most:
        raise InvalidRequestError(
            f"tag {tag.name!r} of {handle.uri} cannot be deleted or moved, even with force=True: "
            "it protects files that a rollback restored. Without the tag an expiry might delete "
            f"these files, because it checks only {most} of {count} snapshots and changelogs. "
            "Expire the snapshots before that rollback; then `tags.expire` (lake tag expire) "
            "deletes the tag"
        )


def is_over(handle: TableHandle, tag: Tag) -> bool:
    """Return True if a tag is no longer needed to protect the files that a rollback restored.

    No expiry can delete these files once every snapshot and every long-lived changelog from before
    the rollback has expired.
    """
    made = tag_made_millis(handle, tag.name)
    oldest = _oldest(handle)
    return (
        oldest is not None and made is not None and oldest.time_millis > made + _CLOCK_SKEW_MILLIS
    )


def _oldest(handle: TableHandle) -> Snapshot | None:
    """Return the oldest long-lived changelog or, without one, the oldest snapshot.

    Return None if the table has no snapshot, or if the oldest has just expired.
    """
    storage, layout = handle.storage, handle.layout
    changelogs, snapshots = changelog_ids(storage, layout), snapshot_ids(storage, layout)
    if not snapshots:
        return None
    if changelogs and changelogs[0] < snapshots[0]:
        return read_changelog_if_present(storage, layout, changelogs[0])
    return read_snapshot_if_present(storage, layout, snapshots[0])


def tag_made_millis(handle: TableHandle, name: str) -> int | None:
    """Return the modification time of a tag file in epoch milliseconds; None if the file is
    missing.
    """
    path = handle.layout.tag(name)
    for info in handle.storage.list(handle.layout.tag_directory):
        if info.path == path:
            return info.modified_millis
    return None
