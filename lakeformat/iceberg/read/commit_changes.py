# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of one commit: the difference between the snapshots before and after it.

For an append, only the manifests of the commit are read. So its changes can be read even if the
snapshot before it has expired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.read.appends import APPEND, REPLACE
from lakeformat.iceberg.read.asked_rows import AskedRows
from lakeformat.iceberg.read.changed_rows import added_rows, changed_rows
from lakeformat.iceberg.read.plan import TableState

__all__ = ["commit_changes"]


def commit_changes(after: TableState, asked: AskedRows) -> Iterator[pa.RecordBatch]:
    """Return the changes of the commit that made a snapshot; a ``replace`` has no changes.

    For a commit that may delete rows, raise ``NotFoundError`` if the snapshot before it has
    expired. The error is raised before any row is returned.
    """
    commit = after.snapshot
    assert commit is not None
    if commit.operation == REPLACE:
        return iter(())
    if commit.operation == APPEND:
        return added_rows(after, asked)
    before = None if commit.parent_id is None else after.metadata.snapshot(commit.parent_id)
    if before is None and commit.parent_id is not None:
        operation = "is not stored" if commit.operation is None else f"is {commit.operation!r}"
        raise NotFoundError(
            f"snapshot {commit.snapshot_id} of {after.places.uri} may delete or overwrite rows "
            f"(its operation {operation}), and the state before it has expired, so these rows are "
            "not known: read all rows with scan(), and then the changes after the snapshot of that "
            "scan"
        )
    return changed_rows(replace(after, snapshot=before), after, asked)
