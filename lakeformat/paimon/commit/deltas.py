# SPDX-License-Identifier: Apache-2.0
"""Reads the changes that single snapshots made."""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns, read_manifests
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present

__all__ = ["delta_of", "newest_first"]


def delta_of(handle: TableHandle, snapshot: Snapshot) -> ManifestColumns:
    """Return the manifest entries of the files that one snapshot added or deleted."""
    storage, layout = handle.storage, handle.layout
    return read_manifests(storage, layout, manifests_of(storage, layout, snapshot, ListKind.DELTA))


def newest_first(handle: TableHandle, head: Snapshot, down_to: int) -> Iterator[Snapshot | None]:
    """Yield ``head`` and the earlier snapshots with an id above ``down_to``, newest first.

    One item is yielded for each id: None for a snapshot that has expired.
    """
    for number in range(head.id, down_to, -1):
        if number == head.id:
            yield head
        else:
            yield read_snapshot_if_present(handle.storage, handle.layout, number)
