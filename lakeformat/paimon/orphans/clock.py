"""The age floor by the clock that dates the files: the storage's, not this machine's."""

from __future__ import annotations

from contextlib import suppress

from lakeformat.errors import LakeError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.orphans.floor import AgeFloor
from lakeformat.storage.base import temporary_sibling

__all__ = ["by_storage_clock"]


def by_storage_clock(
    handle: TableHandle,
    floor: AgeFloor,
    newest: Snapshot | None,
    *,
    is_told: bool,
    may_write: bool,
) -> AgeFloor:
    """Return a floor that a clock which runs ahead cannot move past a write under way.

    The age counts from the storage's clock where that is behind this machine's. Unless the
    caller gave an age or the oldest write (``is_told``), files written since a day before the
    newest commit are kept. A dry run writes nothing (``may_write``): it knows the storage's clock
    from the newest snapshot's file alone.
    """
    snapshot = None if newest is None else handle.layout.snapshot(newest.id)
    now, changed = _file_times(handle, snapshot, may_write=may_write)
    lag = 0 if now is None else handle.environment.now_millis() - now
    if newest is None:
        return floor.behind(lag)
    committed = newest.time_millis
    if changed:
        lag = max(lag, committed - changed)
        committed = min(committed, changed)
    floor = floor.behind(lag)
    return floor if is_told else floor.before_commit(newest.id, committed)


def _file_times(
    handle: TableHandle, snapshot: str | None, *, may_write: bool
) -> tuple[int | None, int | None]:
    """The storage's dates of a file written now, and of the file of a snapshot.

    None where it keeps no time or nothing was written. The probe has the name of a temporary
    file: readers ignore a leftover, and the next removal of orphans collects it.
    """
    storage, directory = handle.storage, handle.layout.snapshot_directory
    probe = temporary_sibling(f"{directory}/clock", handle.environment.new_id())
    if may_write:
        storage.overwrite(probe, b"")
    try:
        times = {info.path: info.modified_millis for info in storage.list(directory)}
    finally:
        if may_write:
            with suppress(LakeError):
                storage.delete(probe)
    return times.get(probe) or None, times.get(snapshot or "") or None
