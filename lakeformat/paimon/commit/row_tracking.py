# SPDX-License-Identifier: Apache-2.0
"""Row ids: each row of a table with row tracking has a number that no other row has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.metadata.data_file_meta import FileSource
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import NumberColumn

__all__ = ["number_rows"]


def number_rows(
    changes: SnapshotDelta, snapshot_id: int, first: int, *, by_partition: bool
) -> tuple[SnapshotDelta, int]:
    """Number the rows of new files from ``first`` on; return the changes and the next free number.

    With ``by_partition`` the files of a partition get consecutive numbers. Files with the sequence
    number 0 get ``snapshot_id`` as their sequence number. All these numbers depend on the newest
    snapshot, so every attempt assigns them again.
    """
    table = _stamp(changes.table, snapshot_id)
    if by_partition:
        codes = table.partition.to_arrow().dictionary_encode().indices.to_numpy()
        table = table.take(np.argsort(codes, kind="stable"))
    ids = table.first_row_id
    present = np.ones(len(table), np.bool_) if ids.present is None else ids.present
    new = ~table.is_delete & ~present & (table.file_source.numbers == FileSource.APPEND)
    rows = np.where(new, table.row_count.numbers, 0)
    starts = first + np.cumsum(rows) - rows
    known = present | new
    numbers = NumberColumn(np.where(new, starts, ids.numbers), None if known.all() else known)
    return replace(changes, table=replace(table, first_row_id=numbers)), first + int(rows.sum())


def _stamp(columns: ManifestColumns, snapshot_id: int) -> ManifestColumns:
    least, most = columns.min_sequence_number.numbers, columns.max_sequence_number.numbers
    both = least == 0
    upper = both | (most == 0)
    return replace(
        columns,
        min_sequence_number=NumberColumn(np.where(both, snapshot_id, least)),
        max_sequence_number=NumberColumn(np.where(upper, snapshot_id, most)),
    )
