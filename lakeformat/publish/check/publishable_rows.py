# SPDX-License-Identifier: Apache-2.0
"""Reads the rows that the published files of a Paimon snapshot have, without Iceberg metadata."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.scan import Scan
from lakeformat.publish.schemas import without_dropped
from lakeformat.publish.visible_files import visible_files

__all__ = ["publishable_rows"]


def publishable_rows(handle: TableHandle, snapshot: Snapshot) -> Scan:
    """Return a scan of the files of a snapshot whose rows need no merge, with the published columns
    of the snapshot.
    """
    live = plan_columns(handle, snapshot).columns
    hidden = live.filter(~visible_files(handle.schema, live)).file_name.texts()
    names = [name for name in hidden if name is not None]
    newest = handle.schema
    if snapshot.schema_id != newest.id:
        of_snapshot = read_schema(handle.storage, handle.layout, snapshot.schema_id)
        handle = replace(handle, schema=of_snapshot)
    shown = without_dropped(handle.schema, newest, newest.table_options.iceberg_format_version)
    return Scan(handle, snapshot, [field.name for field in shown.fields], without=names)
