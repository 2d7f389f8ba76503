# SPDX-License-Identifier: Apache-2.0
"""Groups the manifests to merge.

All manifests of a group have the same partition spec, and list either only data files or only
delete files. The merged entries are sorted by partition. So each new manifest has few partitions,
and a scan of some partitions can skip most manifests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.read.entry_columns import partition_columns
from lakeformat.iceberg.sort_order import SortField
from lakeformat.iceberg.write.known_counts import with_counts
from lakeformat.iceberg.write.manifest_merge import MergeSettings, has_unknown_transform, pending
from lakeformat.iceberg.write.sorted_rows import sort_keys
from lakeformat.rows.groups import Positions
from lakeformat.rows.value_order import positions_by_values
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.count_text import counted

__all__ = ["ManifestGroup", "due_groups"]

_DELETES = 1
"""The value of the field ``content`` of a manifest list, for a manifest of delete files."""
_SAMPLE = 1000
"""The number of entries that are encoded to estimate the size of all entries."""
_TOO_LARGE = 1.5
"""A manifest larger than the target size times this factor is split."""
_NO_SNAPSHOT = 0
_ASCENDING = SortField((), "identity", "asc", "nulls-first")


@dataclass(frozen=True, slots=True)
class ManifestGroup:
    """Manifests to replace, and the live entries for the new manifests."""

    manifests: pa.Table
    writer: ManifestWriter
    entries: pa.Table
    """The live entries, sorted by partition; their status in the new snapshot is EXISTING."""
    count: int
    """The number of new manifests."""
    reason: str

    def parts(self) -> list[pa.Table]:
        """Return the entries for each new manifest."""
        ends = [len(self.entries) * place // max(self.count, 1) for place in range(self.count + 1)]
        return [self.entries.slice(start, end - start) for start, end in pairwise(ends)]


def due_groups(loaded: LoadedMetadata, manifests: pa.Table) -> Iterator[ManifestGroup]:
    """Yield the groups of manifests that should be rewritten.

    A group is due for one of four reasons: its entries would fit into fewer manifests, some entries
    are of deleted files, several manifests share partitions, or a manifest is too large. Partition
    specs with an unknown transform are left out.
    """
    target = MergeSettings.of(loaded.metadata.properties).target_bytes
    known = with_counts(loaded, manifests)
    kinds = known.select(["partition_spec_id", "content"]).to_pylist()
    for spec_id, content in sorted({tuple(each.values()) for each in kinds}):
        spec = loaded.metadata.spec_of(spec_id)
        if has_unknown_transform(spec):
            continue
        is_alike = [tuple(each.values()) == (spec_id, content) for each in kinds]
        writer = ManifestWriter(loaded.metadata, spec, of_deletes=content == _DELETES)
        group = _group(loaded, known.filter(pa.array(is_alike, pa.bool_())), writer, target)
        if group.reason:
            yield group


def _group(
    loaded: LoadedMetadata, manifests: pa.Table, writer: ManifestWriter, target: int
) -> ManifestGroup:
    """Return the group of these manifests; its ``reason`` is empty if they need no merge."""
    (entries,) = read_entries(loaded.places, loaded.metadata, manifests).values()
    live = pending(entries, _NO_SNAPSHOT)
    order = _by_partition(live)
    live = live.take(array_of(order))
    count = _fitting(writer, live, target)
    reason = ""
    if deleted := len(entries) - len(live):
        reason = counted(deleted, "entry of a deleted file", "entries of deleted files")
    elif len(manifests) > count:
        reason = f"{counted(len(manifests), 'manifest')}, where {count} would be enough"
    elif pc.max(manifests.column("manifest_length")).as_py() > _TOO_LARGE * target:
        reason = "a manifest is larger than the target size"
    elif _share_partitions(manifests, order):
        reason = "manifests share partitions"
    return ManifestGroup(manifests, writer, live, count, reason)


def _share_partitions(manifests: pa.Table, order: Positions) -> bool:
    """Return True if sorting by partition mixes the entries of different manifests.

    ``order`` is the order of the entries by partition.
    """
    counts = pc.add(manifests.column("added_files_count"), manifests.column("existing_files_count"))
    numbers = np.repeat(np.arange(len(manifests)), counts.to_numpy())
    if len(numbers) != len(order):  # the list has other counts than the manifests
        return True
    return int(np.count_nonzero(np.diff(numbers[order]))) >= len(manifests)


def _by_partition(entries: pa.Table) -> Positions:
    """Return the order of entries by partition; entries of one partition keep their order."""
    keys = [
        key for values in partition_columns(entries) for key, _ in sort_keys(values, _ASCENDING)
    ]
    keys.append(array_of(np.arange(len(entries))))
    return positions_by_values(keys, ["ascending"] * len(keys))


def _fitting(writer: ManifestWriter, entries: pa.Table, target: int) -> int:
    """Return the number of manifests of about ``target`` bytes that the entries fill; 0 without
    entries.
    """
    if not len(entries):
        return 0
    places = np.unique(np.linspace(0, len(entries) - 1, _SAMPLE).astype(np.int64))
    size = len(writer.encode(entries.take(array_of(places)))) / len(places)
    return max(-(-int(size * len(entries)) // target), 1)
