# SPDX-License-Identifier: Apache-2.0
"""Lets a scan read files before they are published."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import next_sequence_number
from lakeformat.iceberg.read.plan import FilePlan

__all__ = ["UnpublishedFiles"]


@dataclass(frozen=True, slots=True)
class UnpublishedFiles:
    """New data files, and the published files that their commit will remove."""

    entries: tuple[pa.Table, ...]
    """Manifest entries of the new files, as one table for each partition spec."""
    removed: Set[str] = frozenset()
    """The URIs of the files that the commit will remove."""

    @classmethod
    def of(
        cls, metadata: TableMetadata, entries: Sequence[pa.Table], removed: Set[str]
    ) -> UnpublishedFiles:
        """Return the files of ``entries``, with the sequence number of the next commit.

        So no delete applies to them. ``removed`` has the URIs of the files that the commit will
        remove.
        """
        number = next_sequence_number(metadata)
        return cls(tuple(_numbered(each, number) for each in entries if each.num_rows), removed)

    def merged(self, plan: FilePlan) -> FilePlan:
        """Return a plan that also reads the new files, and leaves out the removed files."""
        kept = [each.filter(self._is_kept(each)) for each in plan.entries]
        new = sum(each.num_rows for each in self.entries)
        return replace(
            plan,
            files=None if plan.files is None else plan.files + new,
            files_in_manifests=plan.files_in_manifests + new,
            left_by_partition=plan.left_by_partition + new,
            entries=(*(each for each in kept if each.num_rows), *self.entries),
        )

    def _is_kept(self, entries: pa.Table) -> pa.ChunkedArray:
        removed = pa.array(sorted(self.removed), pa.string())
        return pc.invert(pc.is_in(entries["file_path"], removed))


def _numbered(entries: pa.Table, number: int) -> pa.Table:
    place = entries.schema.get_field_index("sequence_number")
    numbers = pa.repeat(pa.scalar(number, pa.int64()), len(entries))
    return entries.set_column(place, entries.schema.field(place), numbers)
