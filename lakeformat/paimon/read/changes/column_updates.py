# SPDX-License-Identifier: Apache-2.0
"""Refuses to read the changes of commits that replace columns of existing rows."""

from __future__ import annotations

import numpy as np

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns, read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present
from lakeformat.paimon.read.row_ranges import (
    joins_columns,
    refuse_side_file,
    shares_rows,
    side_files,
)

__all__ = ["require_new_rows"]


def require_new_rows(handle: TableHandle, snapshot: Snapshot, files: ManifestColumns) -> None:
    """Raise UnsupportedError if a commit replaces columns of existing rows.

    Raise it also if the commit adds files that have only blobs or vectors. ``files`` are the data
    files that the commit added.
    """
    if not len(files) or not joins_columns(handle.schema):
        return
    if found := side_files(files):
        refuse_side_file(found[0])
    updates = shares_rows(files)
    updates |= files.first_row_id.numbers < _first_new_row(handle, snapshot)
    if updates.any():
        [name] = files.file_name.take(np.flatnonzero(updates)[:1]).texts()
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {handle.uri} replaces columns of existing rows (file "
            f"{name}), which this version cannot read as changes: scan snapshot "
            f"{snapshot.id} as a whole, then read the changes after it"
        )


def _first_new_row(handle: TableHandle, snapshot: Snapshot) -> int:
    """Return the lowest row id that the commit could assign; existing rows have lower ids."""
    if snapshot.id == 1:
        return 0
    storage, layout = handle.storage, handle.layout
    before = read_snapshot_if_present(storage, layout, snapshot.id - 1)
    if before is not None and before.next_row_id is not None:
        return before.next_row_id
    base = read_manifests(storage, layout, manifests_of(storage, layout, snapshot, ListKind.BASE))
    return int(np.max(base.first_row_id.numbers + base.row_count.numbers, initial=0))
