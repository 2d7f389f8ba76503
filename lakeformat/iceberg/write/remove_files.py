# SPDX-License-Identifier: Apache-2.0
"""The manifests of a snapshot without some of its files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest import DELETED, EXISTING, live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.write.file_choice import FileChoice
from lakeformat.iceberg.write.known_counts import with_counts
from lakeformat.iceberg.write.publish import Base

__all__ = ["WithoutFiles", "without_files"]


@dataclass(frozen=True, slots=True)
class WithoutFiles:
    """The remaining manifests, and the entries of the removed files by spec."""

    manifests: pa.Table
    removed: list[pa.Table]


def without_files(base: Base, choice: FileChoice) -> WithoutFiles:
    """Return the manifests of the parent without the chosen files.

    A manifest with chosen files is written again: its other files exist already, and the chosen
    ones are deleted by the new snapshot. The other manifests are kept as they are.
    """
    metadata = base.loaded.metadata
    kept, removed = [MANIFEST_SCHEMA.empty_table()], []
    known = with_counts(base.loaded, base.manifests)
    for place, row in enumerate(known.to_pylist()):
        manifest = known.slice(place, 1)
        if not row["added_files_count"] + row["existing_files_count"]:
            continue
        found = read_entries(base.loaded.places, metadata, manifest)
        live = live_entries(found[row["partition_spec_id"]])
        spec = metadata.spec_of(row["partition_spec_id"])
        mask = choice.mask(metadata, spec, live)
        if not pc.any(mask).as_py():
            kept.append(manifest)
            continue
        writer = ManifestWriter(metadata, spec, of_deletes=bool(row["content"]))
        entries = partial(_marked, live, mask, base.snapshot.snapshot_id)
        key = ("without", row["manifest_path"])
        kept.append(base.files.manifest(key, writer, entries, base.snapshot))
        removed.append(live.filter(mask))
    return WithoutFiles(pa.concat_tables(kept), removed)


def _marked(live: pa.Table, mask: pa.Array, snapshot_id: int) -> pa.Table:
    """Return live entries, of which the chosen ones are deleted by a snapshot."""
    status = pc.if_else(mask, pa.scalar(DELETED, pa.int32()), pa.scalar(EXISTING, pa.int32()))
    ids = pc.if_else(mask, pa.scalar(snapshot_id, pa.int64()), live.column("snapshot_id"))
    for name, column in (("status", status), ("snapshot_id", ids)):
        place = live.schema.get_field_index(name)
        live = live.set_column(place, live.schema.field(place), column)
    return live
