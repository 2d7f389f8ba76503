# SPDX-License-Identifier: Apache-2.0
"""Fills in counts and lengths that a manifest list lacks, as version 1 allows."""

from __future__ import annotations

import pyarrow as pa

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.manifest_writer import entry_counts

__all__ = ["with_counts"]

_COUNTS = tuple(
    f"{kind}_{what}_count"
    for what in ("files", "rows")
    for kind in ("added", "existing", "deleted")
)


def with_counts(loaded: LoadedMetadata, manifests: pa.Table) -> pa.Table:
    """Return the rows of a manifest list with all counts and lengths.

    Missing counts and lengths are read from the manifests.
    """
    unknown = [name for name in _COUNTS if manifests.column(name).null_count]
    is_known = manifests.column("manifest_length").null_count == 0
    if not unknown and is_known:
        return manifests
    rows = manifests.to_pylist()
    for place, row in enumerate(rows):
        if all(row[name] is not None for name in (*_COUNTS, "manifest_length")):
            continue
        some = manifests.slice(place, 1)
        (entries,) = read_entries(loaded.places, loaded.metadata, some).values()
        row |= entry_counts(entries)
        if row["manifest_length"] is None:
            row["manifest_length"] = len(loaded.places.read(row["manifest_path"]))
    return pa.Table.from_pylist(rows, manifests.schema)
