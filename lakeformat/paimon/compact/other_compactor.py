# SPDX-License-Identifier: Apache-2.0
"""Detects another program that compacts the table, such as a Flink writer without
``write-only``.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot, is_foreign_compaction
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.tables.moment import iso_text
from lakeformat.types.duration_text import duration

__all__ = ["OtherCompactor", "find_other_compactor", "warn_of_other_compactor"]

_NEWEST = 100
"""The number of snapshots to search: a writer compacts every few commits."""
_TOGETHER = 16
_RECENT_MILLIS = 14 * 24 * 60 * 60 * 1000
"""A program whose last compaction is older than this has probably stopped."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCompactor:
    """Another program that has compacted the table, and may do so again."""

    table: str
    """The table's name for commands, such as ``shop.orders``."""
    commit_user: str
    snapshot_id: int
    """The id of the newest snapshot that the program's compactions published."""
    time_millis: int
    age_millis: int

    @property
    def finding(self) -> str:
        """A sentence that names the program, and the harm that two compactors do."""
        return (
            f"another program compacts the table too: commit user {self.commit_user!r}, last in "
            f"snapshot {self.snapshot_id}, {duration(self.age_millis)} ago. If `lake compact` "
            "rewrites the same files first, the commit of that program conflicts, and its Flink or "
            "Spark job fails and restarts"
        )

    @property
    def advice(self) -> str:
        """The command that sets ``write-only``, and the advice to restart the other program."""
        return (
            f"lake set-option {shlex.quote(self.table)} write-only=true, then restart that program"
        )

    @property
    def warning(self) -> str:
        """Finding and advice in one line, for the log."""
        return f"{self.table}: {self.finding}. To do: {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "commit_user": self.commit_user,
            "snapshot_id": self.snapshot_id,
            "time": iso_text(self.time_millis),
            "warning": self.warning,
        }


def find_other_compactor(handle: TableHandle) -> OtherCompactor | None:
    """Return the program of the newest compaction that this library did not publish, or None.

    Return None if the table is ``write-only``: its writers do not compact. At most the newest 100
    snapshots of the last 14 days are searched.
    """
    if handle.options.write_only:
        return None
    ids = snapshot_ids(handle.storage, handle.layout)[: -_NEWEST - 1 : -1]
    now = handle.environment.now_millis()
    for snapshot in _newest_first(handle, ids):
        if now - snapshot.time_millis > _RECENT_MILLIS:
            return None
        if is_foreign_compaction(snapshot):
            return OtherCompactor(
                table=handle.name,
                commit_user=snapshot.commit_user,
                snapshot_id=snapshot.id,
                time_millis=snapshot.time_millis,
                age_millis=max(now - snapshot.time_millis, 0),
            )
    return None


def warn_of_other_compactor(handle: TableHandle) -> OtherCompactor | None:
    """Return the other program that compacts the table, or None.

    If there is one, log a warning with the command that stops its compactions.
    """
    found = find_other_compactor(handle)
    if found is not None:
        _log.warning("%s", found.warning)
    return found


def _newest_first(handle: TableHandle, ids: Sequence[int]) -> Iterator[Snapshot]:
    """Yield the snapshots with these ids, in the given order; skip missing and damaged ones.

    Several files are read at the same time.
    """
    with ThreadPoolExecutor(_TOGETHER) as pool:
        for start in range(0, len(ids), _TOGETHER):
            some = pool.map(partial(_readable, handle), ids[start : start + _TOGETHER])
            yield from (each for each in some if each is not None)


def _readable(handle: TableHandle, number: int) -> Snapshot | None:
    """Return a snapshot; None if it has expired or is damaged. Damage is reported by a later
    read.
    """
    try:
        return read_snapshot_if_present(handle.storage, handle.layout, number)
    except CorruptTableError:
        return None
