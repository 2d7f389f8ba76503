# SPDX-License-Identifier: Apache-2.0
"""The files that other commits added or removed since a snapshot was planned.

Only the manifests that one of the two states lacks are read.
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
    """Live files of one state that the other one lacks, data files and delete files alike."""

    removed: frozenset[str]
    """The ids of the files that only the planned state has."""
    added: tuple[pa.Table, ...] = ()
    """The entries of data files that only the newer state has, one table for each spec."""
    added_deletes: tuple[pa.Table, ...] = ()
    """The same of delete files."""


def state_difference(planned: Snapshot, base: Base) -> StateDifference:
    """Compare the state that an attempt builds on with the state of a planned snapshot."""
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
    """Return the path of each file, with the place of a deletion vector inside of it."""
    offsets = pc.fill_null(entries.column("content_offset"), 0).cast(pa.string())
    return pc.binary_join_element_wise(entries.column("file_path"), offsets, "@")


def _lacking(manifests: pa.Table, others: pa.Table) -> pa.Table:
    """Return the manifests that the other list does not have."""
    shared = pc.is_in(manifests.column("manifest_path"), others.column("manifest_path"))
    return manifests.filter(pc.invert(shared))


def _live(loaded: LoadedMetadata, manifests: pa.Table) -> Iterator[pa.Table]:
    for entries in read_entries(loaded.places, loaded.metadata, manifests).values():
        yield live_entries(entries)


def _of(tables: list[pa.Table], is_data: bool) -> Iterator[pa.Table]:
    """Yield the entries of data files, or of delete files."""
    for entries in tables:
        has_rows = pc.equal(entries.column("content"), _DATA)
        some = entries.filter(has_rows if is_data else pc.invert(has_rows)).combine_chunks()
        if len(some):
            yield some
