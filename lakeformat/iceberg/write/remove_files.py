# SPDX-License-Identifier: Apache-2.0
"""Makes the manifests of a snapshot without some of its files."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest import DATA, DELETED, EXISTING, live_entries
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.write.file_choice import FileChoice
from lakeformat.iceberg.write.known_counts import with_counts
from lakeformat.iceberg.write.publish import Base

__all__ = ["WithoutFiles", "without_files"]


@dataclass(frozen=True, slots=True)
class WithoutFiles:
    """The remaining manifests as rows of a manifest list, and the entries of the removed files.

    The entries are one table for each rewritten manifest.
    """

    manifests: pa.Table
    removed: list[pa.Table]


def without_files(
    base: Base,
    choice: FileChoice,
    variant: Hashable = None,
    *,
    needs_statistics: bool = True,
    most: int | None = None,
) -> WithoutFiles:
    """Return the manifests of the parent snapshot without the chosen files.

    A delete file that applies only to a removed data file is removed, too. A manifest with chosen
    files is written again: the chosen files get the status DELETED, its other files EXISTING. All
    other manifests are kept, except those without live files. ``variant`` must differ between
    attempts that choose different files. Pass ``needs_statistics=False`` for a choice that reads no
    statistics, to save time. ``most`` is the highest number of data files that ``choice`` can
    choose. Once so many are found, the remaining manifests of data files are kept without being
    read.
    """
    known = with_counts(base.loaded, base.manifests)
    kept: dict[int, pa.Table] = {}
    removed: list[pa.Table] = []
    paths = pa.array([], pa.string())
    for place, row in _in_reading_order(known):
        if not row["added_files_count"] + row["existing_files_count"]:
            continue
        manifest = known.slice(place, 1)
        if len(paths) == most and row["content"] == DATA:
            kept[place] = manifest
            continue
        live, mask = _chosen(base, choice, manifest, paths, needs_statistics)
        if not pc.any(mask).as_py():
            kept[place] = manifest
            continue
        kept[place] = _written_again(base, row, live, mask, variant)
        removed.append(live.filter(mask))
        if not row["content"]:
            gone = removed[-1].column("file_path").combine_chunks()
            paths = pa.concat_arrays([paths, gone])
    in_order = [kept[place] for place in sorted(kept)]
    return WithoutFiles(pa.concat_tables([MANIFEST_SCHEMA.empty_table(), *in_order]), removed)


def _in_reading_order(manifests: pa.Table) -> list[tuple[int, dict[str, Any]]]:
    """Return the index and the row of each manifest: those of data files first, each kind
    newest first.
    """

    def order(each: tuple[int, dict[str, Any]]) -> tuple[int, int]:
        return each[1]["content"], -(each[1]["sequence_number"] or 0)

    return sorted(enumerate(manifests.to_pylist()), key=order)


def _chosen(
    base: Base,
    choice: FileChoice,
    manifest: pa.Table,
    removed_paths: pa.Array,
    needs_statistics: bool,
) -> tuple[pa.Table, pa.Array]:
    """Return the live entries of a manifest, and a mask of the entries to remove.

    Most bytes of a manifest are statistics. With ``needs_statistics=False`` they are read only if
    a file is removed.
    """
    metadata = base.loaded.metadata

    def look(statistics_of: Collection[int] | None) -> tuple[pa.Table, pa.Array]:
        entries = base.files.entries(metadata, manifest, statistics_of)
        live = live_entries(entries).combine_chunks()
        spec_id = manifest.column("partition_spec_id")[0].as_py()
        mask = choice.mask(metadata, metadata.spec_of(spec_id), live)
        referenced = live.column("referenced_data_file").combine_chunks()
        return live, pc.or_(mask, pc.is_in(referenced, removed_paths))

    if not needs_statistics:
        without = look(())
        if not pc.any(without[1]).as_py():
            return without
    return look(None)


def _written_again(
    base: Base, row: dict[str, Any], live: pa.Table, mask: pa.Array, variant: Hashable
) -> pa.Table:
    metadata = base.loaded.metadata
    spec = metadata.spec_of(row["partition_spec_id"])
    writer = ManifestWriter(metadata, spec, of_deletes=bool(row["content"]))
    entries = partial(_marked, live, mask, base.snapshot.snapshot_id)
    key = ("without", row["manifest_path"], row["first_row_id"], variant)
    return base.files.manifest(key, writer, entries, base.snapshot)


def _marked(live: pa.Table, mask: pa.Array, snapshot_id: int) -> pa.Table:
    """Return the live entries; the entries in ``mask`` are marked as deleted by the snapshot."""
    status = pc.if_else(mask, pa.scalar(DELETED, pa.int32()), pa.scalar(EXISTING, pa.int32()))
    ids = pc.if_else(mask, pa.scalar(snapshot_id, pa.int64()), live.column("snapshot_id"))
    for name, column in (("status", status), ("snapshot_id", ids)):
        place = live.schema.get_field_index(name)
        live = live.set_column(place, live.schema.field(place), column)
    return live
