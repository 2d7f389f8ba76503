# SPDX-License-Identifier: Apache-2.0
"""Reads several snapshots in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.storage import Storage
from lakeformat.tables.parallel import in_parallel

__all__ = ["read_snapshots"]


def read_snapshots(
    storage: Storage, layout: TableLayout, ids: Sequence[int], threads: int | None
) -> list[Snapshot]:
    """Return the snapshots with these ids that still exist, in the order of ``ids``.

    Up to ``threads`` snapshots are read at the same time; ``threads=None`` uses the default of
    ``in_parallel``.
    """
    found = in_parallel(partial(read_snapshot_if_present, storage, layout), ids, threads)
    return [snapshot for snapshot in found if snapshot is not None]
