"""The snapshots a table has: which is the newest, which are there, how one is published.

``LATEST`` and ``EARLIEST`` are hints of other people and programs: they save a listing when
they are right and are ignored when they are not.
"""

from __future__ import annotations

import logging

from lakeformat.errors import CorruptTableError, LakeError, NotFoundError
from lakeformat.layout import TableLayout, numbered
from lakeformat.metadata.json_file import decode_json_file
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.storage import Storage

__all__ = [
    "latest_snapshot",
    "publish_snapshot",
    "read_snapshot",
    "read_snapshot_if_present",
    "snapshot_ids",
    "write_hints",
]

FIRST_SNAPSHOT_ID = 1
_log = logging.getLogger(__name__)


def latest_snapshot(storage: Storage, layout: TableLayout) -> Snapshot | None:
    """The newest snapshot; None for a table nobody has committed to."""
    latest = _latest_by_hint(storage, layout)
    if latest is None:
        latest = max(snapshot_ids(storage, layout), default=None)
    return None if latest is None else read_snapshot(storage, layout, latest)


def snapshot_ids(storage: Storage, layout: TableLayout) -> list[int]:
    """The numbers of all snapshots that are there, ascending."""
    names = (info.name for info in storage.list(layout.snapshot_directory))
    return sorted(n for n in (numbered(name, "snapshot-") for name in names) if n is not None)


def read_snapshot(storage: Storage, layout: TableLayout, snapshot_id: int) -> Snapshot:
    """One snapshot; ``NotFoundError`` when it does not exist or has expired."""
    snapshot = read_snapshot_if_present(storage, layout, snapshot_id)
    if snapshot is None:
        ids = snapshot_ids(storage, layout)
        there = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "it has no snapshot yet"
        raise NotFoundError(
            f"snapshot {snapshot_id} of {storage.uri(layout.root)} does not exist "
            f"or has expired; {there}"
        )
    return snapshot


def read_snapshot_if_present(
    storage: Storage, layout: TableLayout, snapshot_id: int
) -> Snapshot | None:
    """One snapshot; None when it does not exist or has expired."""
    path = layout.snapshot(snapshot_id)
    try:
        content = storage.read(path)
    except NotFoundError:
        return None
    snapshot = decode_json_file(content, storage.uri(path), Snapshot.from_json)
    if snapshot.id != snapshot_id:
        raise CorruptTableError(f"{storage.uri(path)} says it is snapshot {snapshot.id}")
    return snapshot


def publish_snapshot(storage: Storage, layout: TableLayout, snapshot: Snapshot) -> bool:
    """Make a snapshot visible: the instant a commit happens. False if the number is taken."""
    return storage.create(layout.snapshot(snapshot.id), snapshot.to_json())


def write_hints(storage: Storage, layout: TableLayout, snapshot_id: int) -> None:
    """Point ``LATEST`` at a snapshot just published; failing costs readers a listing, no more."""
    try:
        storage.overwrite(layout.latest_hint, str(snapshot_id).encode())
        if not storage.exists(layout.earliest_hint):
            earliest = min(snapshot_ids(storage, layout), default=snapshot_id)
            storage.overwrite(layout.earliest_hint, str(earliest).encode())
    except LakeError:
        _log.warning("hints of %s not updated", storage.uri(layout.root), exc_info=True)


def _latest_by_hint(storage: Storage, layout: TableLayout) -> int | None:
    hint = _read_hint(storage, layout.latest_hint)
    if hint is None or hint < FIRST_SNAPSHOT_ID:
        return None
    newer = storage.exists(layout.snapshot(hint + 1))
    return hint if not newer and storage.exists(layout.snapshot(hint)) else None


def _read_hint(storage: Storage, path: str) -> int | None:
    try:
        text = storage.read(path).decode("ascii", errors="replace").strip()
    except NotFoundError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None
