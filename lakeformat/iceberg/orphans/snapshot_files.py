# SPDX-License-Identifier: Apache-2.0
"""Reads the manifests of several snapshots in parallel, and the live files of these manifests."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from lakeformat.errors import LakeError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.reachable_files import live_files, manifests_of
from lakeformat.tables.parallel import in_parallel

__all__ = ["SnapshotFiles"]

T = TypeVar("T")

_AT_A_TIME = 16
"""The number of manifests whose live files are read ahead."""


@dataclass(slots=True)
class SnapshotFiles:
    """The manifests of some snapshots, and the live files of those manifests.

    A manifest that the caller already knows is listed, but its live files are not read. If a file
    cannot be read, the method that returns its content raises the error.
    """

    _loaded: LoadedMetadata
    _lists: Mapping[int, dict[str, pa.Table] | LakeError]
    _waiting: dict[str, pa.Table]
    _read: dict[str, list[str] | LakeError] = field(default_factory=dict)

    @classmethod
    def of(
        cls, loaded: LoadedMetadata, snapshots: Sequence[Snapshot], known: Container[str]
    ) -> SnapshotFiles:
        """Read the manifest lists; the live files of ``known`` manifests are not read."""
        lists = in_parallel(partial(_manifests, loaded), snapshots)
        waiting = {
            spelled: manifest
            for found in lists
            if not isinstance(found, LakeError)
            for spelled, manifest in found.items()
            if spelled not in known
        }
        by_id = {each.snapshot_id: found for each, found in zip(snapshots, lists, strict=True)}
        return cls(loaded, by_id, waiting)

    def manifests(self, snapshot: Snapshot) -> Mapping[str, pa.Table]:
        """Return the manifests of a snapshot as ``manifests_of`` does."""
        return _value(self._lists[snapshot.snapshot_id])

    def live(self, spelled: str) -> list[str]:
        """Return the URIs of the live files in the manifest with the normalised URI ``spelled``."""
        if spelled not in self._read:
            names = [*dict.fromkeys([spelled, *islice(self._waiting, _AT_A_TIME)])]
            rows = [self._waiting.pop(name) for name in names]
            found = in_parallel(partial(_live, self._loaded), rows)
            self._read.update(zip(names, found, strict=True))
        addresses = _value(self._read[spelled])
        del self._read[spelled]  # an error is kept for the next snapshot with this manifest
        return addresses


def _manifests(loaded: LoadedMetadata, snapshot: Snapshot) -> dict[str, pa.Table] | LakeError:
    try:
        return manifests_of(loaded, [snapshot])
    except LakeError as reason:
        return reason


def _live(loaded: LoadedMetadata, manifest: pa.Table) -> list[str] | LakeError:
    try:
        return [each.address for each in live_files(loaded, [manifest]).values()]
    except LakeError as reason:
        return reason


def _value(found: T | LakeError) -> T:
    if isinstance(found, LakeError):
        raise found
    return found
