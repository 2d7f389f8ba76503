# SPDX-License-Identifier: Apache-2.0
"""Finds the files that a commit makes visible to Iceberg readers, and the files that it hides from
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.commit.base_files import in_partitions
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import Mask
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.publish.entries import FileEntries
from lakeformat.publish.visible_files import buckets_of, shows_top_levels, visible_files

__all__ = ["VisibleChanges"]


@dataclass(frozen=True, slots=True)
class VisibleChanges:
    """Finds the changes of one snapshot for Iceberg readers."""

    handle: TableHandle
    snapshot: Snapshot
    entries: FileEntries

    def of(self, changes: ManifestColumns) -> tuple[ManifestColumns, pa.Array]:
        """Return the files that become visible, and the URIs of files that are no longer visible.

        ``changes`` are the files that the commit added and removed. A file that is removed and
        added again, for example with a new index, is in neither result. If readers see only the
        highest level of each bucket, a file on a higher level hides the files of lower levels. So
        the manifest entries of all files are read for each bucket with a change above level 0.
        """
        schema = self.handle.schema
        if not shows_top_levels(schema):
            shown = changes.filter(visible_files(schema, changes))
            return self._apart(shown.filter(shown.is_delete), shown.filter(~shown.is_delete))
        above = changes.filter(changes.level.numbers > 0)
        if not len(above):
            return above, pa.array([], pa.string())
        after = self._in_buckets_of(above)
        before = self._before(after, above)
        return self._apart(
            before.filter(visible_files(schema, before)), after.filter(visible_files(schema, after))
        )

    def since(self, before: Snapshot) -> tuple[ManifestColumns, pa.Array]:
        """Return the files that became visible since ``before``, and the URIs of files no longer
        visible.

        All files of both snapshots are listed.
        """
        return self._apart(self._visible_at(before), self._visible_at(self.snapshot))

    def _visible_at(self, snapshot: Snapshot) -> ManifestColumns:
        live = plan_columns(self.handle, snapshot).columns
        return live.filter(visible_files(self.handle.schema, live))

    def _in_buckets_of(self, changes: ManifestColumns) -> ManifestColumns:
        live = in_partitions(self.handle, changes.partition.to_arrow().unique()).at(self.snapshot)
        together = buckets_of(ManifestColumns.concat([changes, live]))
        return live.filter(np.isin(together[len(changes) :], together[: len(changes)]))

    def _before(self, after: ManifestColumns, changes: ManifestColumns) -> ManifestColumns:
        """Return the files that the buckets of ``changes`` had before the commit.

        ``after`` has the files of these buckets after the commit. On level 0, the result has the
        same files as ``after``, because readers do not see this level.
        """
        added, removed = changes.filter(~changes.is_delete), changes.filter(changes.is_delete)
        is_new = pc.is_in(self._identities(after), self._identities(added))
        kept = after.filter(_to_mask(pc.invert(is_new)))
        return ManifestColumns.concat([kept, removed])

    def _identities(self, files: ManifestColumns) -> pa.Array:
        levels = pa.array(files.level.numbers).cast(pa.string())
        return pc.binary_join_element_wise(levels, self.entries.paths(files), " ")

    def _apart(
        self, before: ManifestColumns, after: ManifestColumns
    ) -> tuple[ManifestColumns, pa.Array]:
        was, now = self.entries.paths(before), self.entries.paths(after)
        added = after.filter(_to_mask(pc.invert(pc.is_in(now, was))))
        return added, was.filter(pc.invert(pc.is_in(was, now)))


def _to_mask(values: pa.Array) -> Mask:
    mask: Mask = values.to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask
