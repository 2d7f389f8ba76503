# SPDX-License-Identifier: Apache-2.0
"""The live files against which a commit is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.commit.deltas import newest_first
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.metadata.manifest_list import ListKind, ManifestMeta, manifests_of
from lakeformat.paimon.metadata.referrer import naming_row
from lakeformat.paimon.metadata.simple_stats import may_contain_any
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.partition import partition_fields

__all__ = ["BaseFiles", "in_partitions"]


class BaseFiles:
    """The live files of some partitions, at each snapshot that the commit tries to build on.

    The first attempt reads all manifests that may name such files. A later attempt reads only the
    manifests of the snapshots that were published after the previous attempt. After an OVERWRITE,
    an expiry or a rollback, it reads all manifests that may name such files again.
    """

    def __init__(
        self,
        handle: TableHandle,
        wanted: Callable[[ManifestColumns], Mask],
        may_hold: Callable[[ManifestMeta], bool],
    ) -> None:
        self._handle = handle
        self._wanted = wanted
        self._may_hold = may_hold
        self._head: Snapshot | None = None
        self._live = columns_of([])

    def at(self, head: Snapshot) -> ManifestColumns:
        """Return the manifest entries of the live files at ``head``, in commit order."""
        newer = self._newer_manifests(head)
        if newer is None:
            entries = self._read(manifests_of(self._handle.storage, self._handle.layout, head))
        else:
            entries = ManifestColumns.concat([self._live, self._read(newer)])
        rows = live_rows(entries, f"snapshot {head.id} of {self._handle.uri}")
        self._head, self._live = head, entries.take(rows)
        return self._live

    def _newer_manifests(self, head: Snapshot) -> list[ManifestMeta] | None:
        """Return the delta manifests of the snapshots since the last call of ``at``.

        Return None if all manifests must be read: at the first call, and after an OVERWRITE, an
        expiry or a rollback. After a rollback a snapshot of another history may have the same
        number.
        """
        if self._head is None or self._head.id > head.id:
            return None
        storage, layout = self._handle.storage, self._handle.layout
        found: list[ManifestMeta] = []
        last, *newer = reversed([*newest_first(self._handle, head, self._head.id - 1)])
        if last is None or last.identity != self._head.identity:
            return None
        for snapshot in newer:
            if snapshot is None or snapshot.commit_kind is CommitKind.OVERWRITE:
                return None
            found += manifests_of(storage, layout, snapshot, ListKind.DELTA)
        return found

    def _read(self, manifests: Sequence[ManifestMeta]) -> ManifestColumns:
        chosen = [manifest for manifest in manifests if self._may_hold(manifest)]
        storage, layout = self._handle.storage, self._handle.layout
        read = read_manifests(storage, layout, chosen)
        with naming_row(
            len(chosen),
            lambda row: self._wanted(read_manifests(storage, layout, [chosen[row]])),
            lambda row: f"an entry of {storage.uri(layout.manifest(chosen[row].file_name))}",
        ):
            return read.filter(self._wanted(read))


def in_partitions(handle: TableHandle, partitions: pa.Array) -> BaseFiles:
    """Return the reader of the live files of ``partitions``.

    The partitions are as manifests store them: framed binary rows.
    """
    types = [field.type for field in partition_fields(handle.schema)]
    rows = partitions.to_pylist()

    def wanted(columns: ManifestColumns) -> Mask:
        found: Mask = pc.is_in(columns.partition.to_arrow(), partitions).to_numpy(False)
        return found

    def may_hold(manifest: ManifestMeta) -> bool:
        return may_contain_any(manifest.partition_stats, rows, types)

    return BaseFiles(handle, wanted, may_hold)
