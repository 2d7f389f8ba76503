# SPDX-License-Identifier: Apache-2.0
"""Measures the age of files by the storage's clock, because the storage sets their times."""

from __future__ import annotations

from contextlib import suppress

from lakeformat.errors import LakeError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.storage.base import temporary_sibling
from lakeformat.tables.age_floor import AgeFloor

__all__ = ["by_storage_clock"]


def by_storage_clock(
    handle: TableHandle,
    floor: AgeFloor,
    newest: Snapshot | None,
    *,
    is_explicit: bool,
    may_write: bool,
) -> AgeFloor:
    """Adjust the age limit to the storage's clock, so that files of a running write are kept.

    If the storage's clock is more than 5 minutes behind the clock of this machine, the limit is
    earlier by the difference. Unless the caller has set the limit (``is_explicit``), the limit is
    at least one day before the newest commit. Without ``may_write``, as in a dry run, the storage's
    clock is known only from the file time of the newest snapshot.
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
    return floor if is_explicit else floor.before_commit(newest.id, committed)


def _file_times(
    handle: TableHandle, snapshot: str | None, *, may_write: bool
) -> tuple[int | None, int | None]:
    """Return the current time of the storage's clock and the file time of ``snapshot``.

    Both are in epoch milliseconds, and None if the storage keeps no times. The current time is the
    file time of a new, empty file, which is deleted at once; readers ignore it as a temporary file.
    If ``may_write`` is False, no file is written, and the current time is None. If ``snapshot`` is
    None, its file time is None.
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
