# SPDX-License-Identifier: Apache-2.0
"""Moves rows of ``bucket-postpone`` to the buckets of their keys.

One COMPACT snapshot removes the postponed files of a partition and adds files of level 0. The rows
keep the order of their commits, and are newer than the rows that the bucket already has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.write.assign import Assigner, NewFiles, PartitionNumbers
from lakeformat.paimon.write.key_value_bucket import KeyValueBuckets
from lakeformat.paimon.write.row_kinds import accepted_rows
from lakeformat.paimon.write.sequences import SequenceNumbers

__all__ = ["give_buckets", "with_buckets"]


def with_buckets(handle: TableHandle, count: int) -> TableHandle:
    """Return the handle with ``'bucket' = count``."""
    options = {**handle.schema.options, "bucket": str(count)}
    return replace(handle, schema=replace(handle.schema, options=options))


def give_buckets(handle: TableHandle, unit: CompactUnit) -> tuple[CommitMessage, ...]:
    """Write the rows of a unit to their buckets; after any error the new files are deleted.

    Return a message that removes the unit's files, and a message for each bucket that gets new
    files.
    """
    assert unit.buckets is not None
    target = with_buckets(handle, unit.buckets)
    assign = Assigner(target.schema, PartitionNumbers(target.schema, None))
    sequences = SequenceNumbers(target, unit.snapshot)
    buckets = KeyValueBuckets(target, sequences, assign.place, with_changelog=True)
    try:
        for rows, kinds in postponed_rows(handle, unit):
            buckets.add(rows, kinds, assign(rows, range(rows.num_rows)))
        made = buckets.finish()
    except BaseException:
        buckets.abort()
        raise
    return (unit.message(handle, ()), *(_message(handle, unit, files) for files in made))


def postponed_rows(
    handle: TableHandle, unit: CompactUnit
) -> Iterator[tuple[pa.RecordBatch, np.ndarray[tuple[int], np.dtype[np.int8]]]]:
    """Yield the rows of the unit's files with their kinds, in commit order.

    Rows that ``ignore-delete`` or ``ignore-update-before`` drops are left out.
    """
    files = DataFiles(handle, unit.snapshot, DeletedRows(handle, (), ""))
    names = handle.schema.column_names
    for entry in unit.files:
        assert entry.bucket == POSTPONE_BUCKET
        for batch in files.key_values(entry, handle.schema.fields, numbered=False):
            kinds = batch.column(VALUE_KIND.name).to_numpy().astype(np.int8)
            rows = batch.select(names)
            if (accepted := accepted_rows(handle.schema, kinds)) is not None:
                rows, kinds = rows.filter(pa.array(accepted)), kinds[accepted]
            if rows.num_rows:
                yield rows, kinds


def _message(handle: TableHandle, unit: CompactUnit, files: NewFiles) -> CommitMessage:
    return CommitMessage(
        table=handle.uri,
        partition=files.place.partition,
        bucket=files.place.bucket,
        total_buckets=unit.buckets,
        base_snapshot=unit.snapshot.id,
        branch=handle.layout.branch,
        compact_after=files.data,
        compact_changelog_files=files.changelog,
    )
