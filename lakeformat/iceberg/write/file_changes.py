# SPDX-License-Identifier: Apache-2.0
"""The change of one snapshot: files to add, and files to remove."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.write.counts import FileCounts, partition_count
from lakeformat.iceberg.write.file_choice import FileChoice
from lakeformat.iceberg.write.manifest_merge import merge_manifests
from lakeformat.iceberg.write.new_entries import with_snapshot
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.iceberg.write.remove_files import without_files

__all__ = ["ChangedFiles", "added_manifest"]


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """Adds new files and removes chosen files, in one snapshot."""

    added: Sequence[pa.Table] = ()
    """The manifest entries of the new files, as one table for each partition spec."""
    choice: FileChoice | None = None
    """Chooses the files to remove; None for an append."""
    variant: Hashable = None
    """A value that must differ if two attempts of the commit choose different files."""
    is_recorded: bool = False
    """True if a snapshot is published even if no file changes, so that a repeated commit
    finds it.
    """

    def __call__(self, base: Base) -> FileChange | None:
        """Return the change for the newest snapshot; None if nothing changes."""
        added = [each for each in self.added if len(each)]
        removed: list[pa.Table] = []
        manifests = base.manifests
        if self.choice is not None:
            left = without_files(base, self.choice, self.variant)
            removed, manifests = left.removed, left.manifests
        if not removed and not added and not self.is_recorded:
            return None
        new = [added_manifest(base, each) for each in added]
        return FileChange(
            _operation(has_added=bool(added), has_removed=bool(removed)),
            merge_manifests(
                base.loaded, pa.concat_tables([*new, manifests]), base.files, base.snapshot
            ),
            FileCounts.of(added),
            FileCounts.of(removed),
            partition_count([*added, *removed]),
            removed_files=removed,
        )


def added_manifest(base: Base, entries: pa.Table) -> pa.Table:
    """Return the manifest-list row of a manifest for new files of one partition spec.

    The first attempt of a commit writes the manifest; later attempts use it again.
    """
    metadata, snapshot = base.loaded.metadata, base.snapshot
    spec_id = entries.column("spec_id")[0].as_py()
    writer = ManifestWriter(metadata, metadata.spec_of(spec_id))
    added = partial(with_snapshot, entries, snapshot.snapshot_id)
    return base.files.manifest(("added", spec_id), writer, added, snapshot)


def _operation(*, has_added: bool, has_removed: bool) -> str:
    if has_added and not has_removed:
        return "append"
    return "overwrite" if has_added else "delete"
