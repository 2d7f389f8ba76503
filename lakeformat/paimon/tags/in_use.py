"""Who needs a tag: branches that began at its snapshot, and what a rollback brought back."""

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
"""How far the clocks of committers and of the storage may be apart."""
_PROTECTION_NAME = re.compile(rf"{_PROTECTION}\d+-.+")


def protection_name(snapshot_id: int, unique: str) -> str:
    """The tag that keeps what a rollback has made live again; other engines call it the same."""
    return f"{_PROTECTION}{snapshot_id}-{unique}"


def is_protection(name: str) -> bool:
    """Whether a tag is such a one."""
    return _PROTECTION_NAME.fullmatch(name) is not None


def branches_from(handle: TableHandle, snapshot: Snapshot) -> list[str]:
    """The branches that began at a snapshot, or have a tag of it."""
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
    """Refuse to lose a tag that branches rely on."""
    names = branches_from(handle, tag.snapshot)
    if names:
        raise InvalidRequestError(
            f"tag {tag.name!r} of {handle.uri} is in use: branch {', '.join(map(repr, names))} "
            f"began at its snapshot {tag.snapshot.id}, and other engines' expiry spares the "
            f"files of a branch only as long as that tag is there. Delete the branch before "
            f"{doing} the tag, or pass force=True: what is deleted here spares branches"
        )


def require_unneeded(handle: TableHandle, tag: Tag, doing: str) -> None:
    """Refuse to lose a tag that a branch or a rollback relies on."""
    _require_unused(handle, tag, doing)
    if is_protection(tag.name) and not is_over(handle, tag):
        raise InvalidRequestError(
            f"tag {tag.name!r} of {handle.uri} is in use: a rollback has brought files of its "
            f"snapshot {tag.snapshot.id} back, which other engines' expiry spares only as long as "
            "that tag is there. `tags.expire` deletes it once the snapshots before that rollback "
            "have expired; pass force=True if no other engine expires this table"
        )


def require_found_again(handle: TableHandle, tag: Tag) -> None:
    """Refuse to lose, whoever insists, what even our own expiry would not find out without it."""
    if not is_protection(tag.name) or is_over(handle, tag):
        return
    most = protection.LATER_SNAPSHOTS
    ids = snapshot_ids(handle.storage, handle.layout)
    count = len({*ids, *changelog_ids(handle.storage, handle.layout)})
    if count > most:
        raise InvalidRequestError(
            f"tag {tag.name!r} of {handle.uri} is in use: a rollback has brought files of its "
            f"snapshot {tag.snapshot.id} back, and expiry looks through {most} snapshots or "
            f"changelogs for such files, but there are {count}. `tags.expire` deletes the tag once "
            "the snapshots before that rollback have expired"
        )


def is_over(handle: TableHandle, tag: Tag) -> bool:
    """Whether every snapshot from before the rollback, with which a tag came, has expired.

    So must its changelog have, if it outlives it: its expiry, too, goes by what was deleted.
    """
    made = tag_made_millis(handle, tag.name)
    oldest = _oldest(handle)
    return (
        oldest is not None and made is not None and oldest.time_millis > made + _CLOCK_SKEW_MILLIS
    )


def _oldest(handle: TableHandle) -> Snapshot | None:
    """The oldest changelog, or else snapshot; None if there is none, or it has just expired."""
    storage, layout = handle.storage, handle.layout
    changelogs, snapshots = changelog_ids(storage, layout), snapshot_ids(storage, layout)
    if not snapshots:
        return None
    if changelogs and changelogs[0] < snapshots[0]:
        return read_changelog_if_present(storage, layout, changelogs[0])
    return read_snapshot_if_present(storage, layout, snapshots[0])


def tag_made_millis(handle: TableHandle, name: str) -> int | None:
    """When the file of a tag was written, as the storage says; None if it is gone."""
    path = handle.layout.tag(name)
    for info in handle.storage.list(handle.layout.tag_directory):
        if info.path == path:
            return info.modified_millis
    return None
