# SPDX-License-Identifier: Apache-2.0
"""The snapshots of a table: finds the newest one, lists, reads and publishes them."""

from __future__ import annotations

import logging

from lakeformat.errors import CorruptTableError, LakeError, NotFoundError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.hints import numbered_snapshots
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot import Snapshot, snapshot_reader
from lakeformat.storage import Storage
from lakeformat.storage.empty_directory import empty_remover
from lakeformat.tables.json_file import decode_json_file

__all__ = [
    "FIRST_SNAPSHOT_ID",
    "is_still_newest",
    "latest_snapshot",
    "latest_snapshot_id",
    "publish_snapshot",
    "read_snapshot",
    "read_snapshot_if_present",
    "snapshot_ids",
    "write_hints",
]

FIRST_SNAPSHOT_ID = 1
_LOOKS = 3
_log = logging.getLogger(__name__)


def latest_snapshot(storage: Storage, layout: TableLayout) -> Snapshot | None:
    """Return the newest snapshot; None for a table without commits.

    Raise CorruptTableError if its file is damaged.
    """
    latest = latest_snapshot_id(storage, layout)
    for _ in range(_LOOKS):
        if latest is None:
            return None
        found = read_snapshot_if_present(storage, layout, latest)
        if found is not None:
            return found
        # it has expired meanwhile, so a newer one exists
        latest = latest_snapshot_id(storage, layout)
    return None if latest is None else read_snapshot(storage, layout, latest)


def is_still_newest(storage: Storage, layout: TableLayout, known: Snapshot) -> bool:
    """Return True if ``known``, which was the newest snapshot, is still the newest one.

    Snapshots expire from the oldest on. So ``known`` is the newest if its file has the same
    identity and no file of the next number exists.
    """
    if storage.exists(layout.snapshot(known.id + 1)):
        return False
    found = read_snapshot_if_present(storage, layout, known.id)
    return found is not None and found.identity == known.identity


def latest_snapshot_id(
    storage: Storage, layout: TableLayout, *, for_commit: bool = False
) -> int | None:
    """Return the number of the newest snapshot; None for a table without commits.

    ``for_commit`` selects the warning about a hint that is too high; see
    ``NumberedFiles.latest_id``.
    """
    return numbered_snapshots(storage, layout).latest_id(for_commit=for_commit)


def snapshot_ids(storage: Storage, layout: TableLayout) -> list[int]:
    """Return the numbers of all existing snapshots, ascending."""
    return numbered_snapshots(storage, layout).ids()


def read_snapshot(storage: Storage, layout: TableLayout, snapshot_id: int) -> Snapshot:
    """Return a snapshot; raise NotFoundError if it has expired or was never committed.

    Raise CorruptTableError if its file is damaged.
    """
    snapshot = read_snapshot_if_present(storage, layout, snapshot_id)
    if snapshot is None:
        ids = snapshot_ids(storage, layout)
        there = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "the table has no snapshot yet"
        if len(ids) == 1:
            there = f"only snapshot {ids[0]} exists"
        raise NotFoundError(
            f"snapshot {snapshot_id} of {storage.uri(layout.root)} does not exist "
            f"or has expired; {there}"
        )
    return snapshot


def read_snapshot_if_present(
    storage: Storage, layout: TableLayout, snapshot_id: int
) -> Snapshot | None:
    """Return a snapshot; None if it has expired or was never committed.

    Raise CorruptTableError if its file is damaged.
    """
    path = layout.snapshot(snapshot_id)
    try:
        content = storage.read(path)
    except NotFoundError:
        return None
    build = snapshot_reader(storage, layout)
    snapshot = decode_json_file(content, storage.uri(path), build, Remedy.SNAPSHOT)
    if snapshot.id != snapshot_id:
        raise CorruptTableError(
            f"{storage.uri(path)} contains snapshot {snapshot.id} instead of snapshot "
            f"{snapshot_id}; {Remedy.SNAPSHOT}"
        )
    return snapshot


def publish_snapshot(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> bool:
    """Write ``snapshot-<n>``, which completes its commit; return False if the file exists."""
    return storage.create(layout.snapshot(snapshot.id), snapshot.to_json())


def write_hints(storage: Storage, layout: TableLayout, snapshot_id: int) -> None:
    """Write the number of a published snapshot to ``LATEST``; create ``EARLIEST`` if it is missing.

    A failure is only logged: without hints, readers list the directory.
    """
    files = numbered_snapshots(storage, layout)
    try:
        files.write_latest_hint(snapshot_id)
        if not storage.exists(layout.earliest_hint):
            ids = files.ids()
            if ids:
                files.write_earliest_hint(ids[0])
            else:  # the table or branch was moved a moment ago
                _free_place(storage, layout)
    except LakeError as error:
        from lakeformat.types.sentence import sentence  # only for a message

        # No traceback: the commit has succeeded, and people read this line.
        _log.warning(
            "could not update the hints of %s: %s No action needed: readers list the directory, "
            "and the next commit writes the hints",
            *(storage.uri(layout.root), sentence(error)),
        )


def _free_place(storage: Storage, layout: TableLayout) -> None:
    """Delete the hint that was just written at the old path of a moved table or branch.

    Also delete the directories that are empty afterwards.
    """
    storage.delete(layout.latest_hint)
    directories = empty_remover(storage)
    if directories is not None and directories.remove_empty_directory(layout.snapshot_directory):
        directories.remove_empty_directory(layout.metadata_root)
