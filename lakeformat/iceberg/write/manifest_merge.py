# SPDX-License-Identifier: Apache-2.0
"""Merges small manifests of one partition spec in a commit, as Iceberg's Java library does.

Manifests are put into groups up to the target size, beginning with the oldest. The group with the
newest manifest is merged only if it has at least ``commit.manifest.min-count-to-merge`` manifests.
So most commits merge nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import ADDED, DELETED, EXISTING, read_entries
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.properties import bool_property, int_property
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.write.manifest_files import ManifestFiles

__all__ = ["MergeSettings", "has_unknown_transform", "merge_manifests", "pack", "pending"]

_DATA = 0


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """The table properties that control merging."""

    is_enabled: bool
    target_bytes: int
    min_count: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MergeSettings:
        """Return the settings from table properties; raise ``InvalidRequestError`` for an invalid
        value.
        """
        return cls(
            bool_property(properties, "commit.manifest-merge.enabled", default=True),
            int_property(properties, "commit.manifest.target-size-bytes", 8 << 20),
            int_property(properties, "commit.manifest.min-count-to-merge", 100),
        )


def merge_manifests(
    loaded: LoadedMetadata, manifests: pa.Table, files: ManifestFiles, snapshot: Snapshot
) -> pa.Table:
    """Return the manifests of a snapshot, after a merge of small ones.

    Manifests are merged only with manifests of the same partition spec and kind of files. If the
    table property ``commit.manifest-merge.enabled`` is false, none are merged.
    """
    settings = MergeSettings.of(loaded.metadata.properties)
    if not settings.is_enabled:
        return manifests
    is_data = pc.equal(manifests.column("content"), _DATA)
    parts = [MANIFEST_SCHEMA.empty_table()]
    for some in (manifests.filter(is_data), manifests.filter(pc.invert(is_data))):
        for spec_id in sorted(some.column("partition_spec_id").unique().to_pylist(), reverse=True):
            group = some.filter(pc.equal(some.column("partition_spec_id"), spec_id))
            spec = loaded.metadata.spec_of(spec_id)
            parts += list(_merged(loaded, spec, group, settings, files, snapshot))
    return pa.concat_tables(parts)


def pack(sizes: Sequence[int], target: int) -> list[range]:
    """Return ranges of consecutive indices whose ``sizes`` add up to at most ``target`` bytes.

    The ranges are filled from the last index to the first, and returned in ascending order. A size
    above ``target`` has a range of its own.
    """
    packs: list[range] = []
    end, total = len(sizes), 0
    for place in range(len(sizes) - 1, -1, -1):
        if total and total + sizes[place] > target:
            packs.append(range(place + 1, end))
            end, total = place + 1, 0
        total += sizes[place]
    return [*packs, range(0, end)][::-1] if sizes else []


def pending(entries: pa.Table, snapshot_id: int) -> pa.Table:
    """Return the entries of a manifest as they must be in a manifest of a new snapshot.

    Files that earlier snapshots added are marked as existing; files that they deleted are left out.
    Files that this snapshot adds inherit its sequence number, unless they have one already.
    """
    is_own = pc.equal(entries.column("snapshot_id"), snapshot_id)
    kept = entries.filter(pc.or_(is_own, pc.not_equal(entries.column("status"), DELETED)))
    is_own = pc.equal(kept.column("snapshot_id"), snapshot_id)
    status = kept.column("status")
    is_older = pc.and_(pc.invert(is_own), pc.equal(status, ADDED))
    kept = _replaced(kept, "status", pc.if_else(is_older, pa.scalar(EXISTING, pa.int32()), status))
    is_added = pc.and_(is_own, pc.equal(status, ADDED))
    has_own_number = pc.not_equal(
        kept.column("sequence_number"), kept.column("file_sequence_number")
    )
    inherits = pc.and_(is_added, pc.invert(has_own_number))
    for name, is_unknown in (
        ("sequence_number", inherits),
        ("file_sequence_number", is_added),
        ("first_row_id", is_added),
    ):
        unknown = pa.scalar(None, pa.int64())
        kept = _replaced(kept, name, pc.if_else(is_unknown, unknown, kept.column(name)))
    return kept


def _merged(
    loaded: LoadedMetadata,
    spec: PartitionSpec,
    group: pa.Table,
    settings: MergeSettings,
    files: ManifestFiles,
    snapshot: Snapshot,
) -> Iterator[pa.Table]:
    """Yield the manifests of ``group`` after the merge of small ones.

    All manifests of ``group`` have the partition spec ``spec`` and one kind of files: data files or
    delete files.
    """
    if has_unknown_transform(spec):
        yield group
        return
    sizes = [each or 0 for each in group.column("manifest_length").to_pylist()]
    for place in pack(sizes, settings.target_bytes):
        some = group.slice(place.start, len(place))
        has_newest = place.start == 0
        if len(place) == 1 or (has_newest and len(place) < settings.min_count):
            yield some
            continue
        known = (some.column(name).to_pylist() for name in ("manifest_path", "first_row_id"))
        # Another writer may have assigned first row ids.
        key = ("merged", *zip(*known, strict=True))
        of_deletes = group.column("content")[0].as_py() != _DATA
        writer = ManifestWriter(loaded.metadata, spec, of_deletes)
        read = partial(_entries, loaded, some, files, snapshot)
        yield files.manifest(key, writer, read, snapshot)


def _entries(
    loaded: LoadedMetadata, manifests: pa.Table, files: ManifestFiles, snapshot: Snapshot
) -> pa.Table:
    """Return the entries of manifests; entries of this commit keep their row ids."""
    paths = manifests.column("manifest_path").to_pylist()
    known = [files.first_row_ids(path) for path in paths]
    is_own = pa.array([each is not None for each in known], pa.bool_())
    parts: list[pa.Table] = []
    for some in (manifests.filter(is_own), manifests.filter(pc.invert(is_own))):
        parts += read_entries(loaded.places, loaded.metadata, some).values()
    if own := [each for each in known if each is not None]:
        ids = pa.chunked_array([chunk for each in own for chunk in each.chunks], pa.int64())
        parts[0] = _replaced(parts[0], "first_row_id", ids)
    return pending(pa.concat_tables(parts), snapshot.snapshot_id)


def has_unknown_transform(spec: PartitionSpec) -> bool:
    """Return True if ``spec`` has an unknown transform.

    Merges and compactions of manifests leave out the manifests of such a spec.
    """
    kinds = [parse_transform(field.transform).kind for field in spec.fields]
    return TransformKind.UNKNOWN in kinds


def _replaced(entries: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    place = entries.schema.get_field_index(name)
    return entries.set_column(place, entries.schema.field(place), column)
