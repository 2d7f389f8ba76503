# SPDX-License-Identifier: Apache-2.0
"""Finds the files that other commits added or removed since a change was planned.

Only manifests that one of the two snapshots lacks are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.write.publish import Base

__all__ = ["StateDifference", "entry_ids", "state_difference"]

_DATA = 0


@dataclass(frozen=True, slots=True)
class StateDifference:
    """The data files and delete files that only one of two snapshots has."""

    removed: frozenset[str]
    """The ids of the files that only the planned snapshot has."""
    added: tuple[pa.Table, ...] = ()
    """The entries of data files that only the newer snapshot has, as one table for each spec."""
    added_deletes: tuple[pa.Table, ...] = ()
    """The entries of delete files that only the newer snapshot has, as one table for each spec."""


def state_difference(planned: Snapshot, base: Base) -> StateDifference:
    """Return the files that only ``planned``, or only the newest snapshot, has.

    ``base`` has the newest snapshot, on which the attempt to commit builds.
    """
    if base.parent is not None and base.parent.snapshot_id == planned.snapshot_id:
        return StateDifference(frozenset())
    old, new = read_manifest_list(base.loaded.places, planned), base.manifests
    gone = [*_live(base.loaded, _lacking(old, new))]
    come = [*_live(base.loaded, _lacking(new, old))]
    gone_ids = {each for entries in gone for each in entry_ids(entries).to_pylist()}
    come_ids = {each for entries in come for each in entry_ids(entries).to_pylist()}
    known = pa.array(gone_ids, pa.string())
    found = [entries.filter(pc.invert(pc.is_in(entry_ids(entries), known))) for entries in come]
    return StateDifference(
        frozenset(gone_ids - come_ids), tuple(_of(found, True)), tuple(_of(found, False))
    )


def entry_ids(entries: pa.Table) -> pa.ChunkedArray:
    """Return an id for each file: its path, and the offset of a deletion vector in it."""
    offsets = pc.fill_null(entries.column("content_offset"), 0).cast(pa.string())
    return pc.binary_join_element_wise(entries.column("file_path"), offsets, "@")


def _lacking(manifests: pa.Table, others: pa.Table) -> pa.Table:
    shared = pc.is_in(manifests.column("manifest_path"), others.column("manifest_path"))
    return manifests.filter(pc.invert(shared))


def _live(loaded: LoadedMetadata, manifests: pa.Table) -> Iterator[pa.Table]:
    for entries in read_entries(loaded.places, loaded.metadata, manifests).values():
        yield live_entries(entries)


def _of(tables: list[pa.Table], is_data: bool) -> Iterator[pa.Table]:
    for entries in tables:
        has_rows = pc.equal(entries.column("content"), _DATA)
        some = entries.filter(has_rows if is_data else pc.invert(has_rows)).combine_chunks()
        if len(some):
            yield some
