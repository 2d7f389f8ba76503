# SPDX-License-Identifier: Apache-2.0
"""The change of one published snapshot: data files and delete files to add and to remove."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest import DATA
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.write.counts import FileCounts, partition_count
from lakeformat.iceberg.write.manifest_merge import merge_manifests
from lakeformat.iceberg.write.new_entries import with_snapshot
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.iceberg.write.remove_files import WithoutFiles, without_files
from lakeformat.publish.touched_manifests import touched_manifests

__all__ = ["StateChange"]

_FILES_OF_MANIFEST = 10_000


@dataclass(frozen=True, slots=True)
class StateChange:
    """The files that one snapshot adds and removes.

    The deletes of a removed data file are removed, too.
    """

    added: pa.Table
    """The manifest entries of new data files."""
    removed: pa.Array
    """The URIs of data files to remove."""
    deletes: pa.Table
    """The manifest entries of new delete files."""
    changed: pa.Array
    """The URIs of data files whose earlier deletes must be removed."""
    partitions: pa.StructArray | None = None
    """The partitions of the files in ``removed`` and ``changed``; more partitions are allowed.

    None means that the files may be in any partition.
    """

    def __call__(self, base: Base) -> FileChange:
        """Return the manifests of the new snapshot, and the counts of added and removed files."""
        left = self._left(base)
        new = [each for each in (self.added, self.deletes) if len(each)]
        if not new and not left.removed:
            return FileChange("append", base.manifests, FileCounts())
        manifests = pa.concat_tables(
            [*(made for each in new for made in _made(base, each)), left.manifests]
        )
        if base.parent is not None:
            manifests = merge_manifests(base.loaded, manifests, base.files, base.snapshot)
        return FileChange(
            self._operation(left),
            manifests,
            FileCounts.of(new),
            FileCounts.of(left.removed),
            partition_count([*new, *left.removed]),
        )

    def _left(self, base: Base) -> WithoutFiles:
        """Return the manifests without the removed files.

        Only manifests that may name a file of ``partitions`` are read. Manifests of data files are
        read until all removed data files are found.
        """
        if not len(self.removed) and not len(self.changed):
            return WithoutFiles(base.manifests, [])
        touched = pa.repeat(pa.scalar(True), len(base.manifests))
        if self.partitions is not None:
            metadata = base.loaded.metadata
            touched = touched_manifests(metadata, base.manifests, self.partitions)
        left = without_files(
            replace(base, manifests=base.manifests.filter(touched)),
            _LeavingFiles(self.removed, self.changed),
            needs_statistics=False,
            most=pc.count_distinct(self.removed).as_py(),
        )
        kept = base.manifests.filter(pc.invert(touched))
        return WithoutFiles(pa.concat_tables([left.manifests, kept]), left.removed)

    def _operation(self, left: WithoutFiles) -> str:
        if not left.removed and not len(self.deletes):
            return "append"
        deletes = len(self.removed) or len(self.deletes)
        return "delete" if deletes and not len(self.added) else "overwrite"


@dataclass(frozen=True, slots=True)
class _LeavingFiles:
    """Chooses the files to remove.

    These are the data files with a URI in ``paths``, and the delete files of data files with a URI
    in ``changed``.
    """

    paths: pa.Array
    changed: pa.Array

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        is_named = pc.is_in(entries.column("file_path"), self.paths)
        return pc.or_(is_named, pc.is_in(entries.column("referenced_data_file"), self.changed))


def _made(base: Base, entries: pa.Table) -> list[pa.Table]:
    metadata = base.loaded.metadata
    of_deletes = entries.column("content")[0].as_py() != DATA
    writer = ManifestWriter(metadata, metadata.partition_specs[0], of_deletes)
    found = []
    for start in range(0, len(entries), _FILES_OF_MANIFEST):
        some = entries.slice(start, _FILES_OF_MANIFEST)
        added = partial(with_snapshot, some, base.snapshot.snapshot_id)
        found.append(base.files.manifest((of_deletes, start), writer, added, base.snapshot))
    return found
