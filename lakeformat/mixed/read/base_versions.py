# SPDX-License-Identifier: Apache-2.0
"""Reads the versions of base rows, because a base row hides late inserts with smaller versions.

Only tables with a version field need this. In the change store, each inserted row comes with
a delete of its key. When both are merged into the base store, this delete is no longer read. So the
base row itself counts as a delete of its key, with its version. The transaction of this delete is
lower than those of all changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.read.scan import Scan
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_memory import array_of

__all__ = ["BEFORE_ALL", "base_versions"]

BEFORE_ALL = -1
"""A transaction that is lower than every transaction of a change."""


def base_versions(
    state: MixedState, files: Sequence[StoreFile], deletes: pa.Table, report: ScanReport
) -> pa.Table:
    """Return a table of deletes: one for each base row whose key is in ``deletes``.

    The columns are those of ``deletes``: the key and the version of the base row, and the offset,
    here 0. Other base rows are read, but not kept in memory.
    """
    assert state.version is not None
    if not files:
        return deletes.slice(0, 0)
    base = Scan(state.base, None, None)
    base.report = report
    keys = [column.combine_chunks() for column in deletes.columns[: len(state.key)]]
    wanted = EqualityKeys(keys, np.zeros(len(deletes), np.int64))
    found = []
    for file in files:
        for batch in base.read_fields(file.split, (*state.key, state.version)):
            rows, _ = wanted.matches(batch.columns[: len(keys)])
            if len(rows):
                offsets = array_of(np.zeros(len(rows), np.int64))
                columns = [*batch.take(array_of(rows)).columns, offsets]
                found.append(pa.RecordBatch.from_arrays(columns, schema=deletes.schema))
    return pa.Table.from_batches(found, deletes.schema)
