# SPDX-License-Identifier: Apache-2.0
"""Finds published delete files that only expired snapshots need.

They belong to the publication alone: the Paimon table stores its deleted rows in index files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.reachable_files import live_files, manifests_of
from lakeformat.storage.location import one_spelling

__all__ = ["expired_deletes"]


def expired_deletes(
    loaded: LoadedMetadata, expired: Iterable[Snapshot], kept: Sequence[Snapshot]
) -> list[str]:
    """Return the URIs of delete files that expired snapshots have and kept snapshots do not
    have.
    """
    found: dict[str, str] = {}
    for snapshot in expired:
        if snapshot.summary.get("total-delete-files") != "0":
            with suppress(CorruptTableError):  # another publication has deleted its manifests
                found |= _files(loaded, _delete_manifests(loaded, [snapshot]))
    if found:
        for needed in _files(loaded, _delete_manifests(loaded, kept)):
            found.pop(needed, None)
    return [*found.values()]


def _delete_manifests(
    loaded: LoadedMetadata, snapshots: Sequence[Snapshot]
) -> Mapping[str, pa.Table]:
    listed = manifests_of(loaded, snapshots)
    return {name: row for name, row in listed.items() if row.column("content")[0].as_py() != DATA}


def _files(loaded: LoadedMetadata, manifests: Mapping[str, pa.Table]) -> dict[str, str]:
    """Return the URIs of the live files in manifests, by their normalised form."""
    found = live_files(loaded, manifests.values())
    return {one_spelling(name): each.address for name, each in found.items()}
