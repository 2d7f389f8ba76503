# SPDX-License-Identifier: Apache-2.0
"""The table and the snapshot that a system table shows."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.schema import TableSchema

__all__ = ["Source"]


class Source:
    """A table and the snapshot that a system table shows: the newest snapshot, or an older one."""

    def __init__(self, handle: TableHandle, snapshot: Snapshot | None = None) -> None:
        self._travels_to = snapshot
        self.handle = handle
        if snapshot is not None and snapshot.schema_id != handle.schema.id:
            self.handle = replace(handle, schema=self._read_schema(snapshot.schema_id))

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The snapshot to show; None for a table without commits."""
        if self._travels_to is not None:
            return self._travels_to
        return latest_snapshot(self.handle.storage, self.handle.layout)

    @property
    def name(self) -> str:
        """The URI of the table, with the snapshot if there is one, for error messages."""
        snapshot = self.snapshot
        of = f"snapshot {snapshot.id} of " if snapshot is not None else ""
        return f"{of}{self.handle.uri}"

    def schema(self, schema_id: int) -> TableSchema:
        """Return the schema version ``schema_id``; each version is read only once."""
        if schema_id not in self._schemas:
            self._schemas[schema_id] = self._read_schema(schema_id)
        return self._schemas[schema_id]

    @cached_property
    def _schemas(self) -> dict[int, TableSchema]:
        return {self.handle.schema.id: self.handle.schema}

    def _read_schema(self, schema_id: int) -> TableSchema:
        return read_schema(self.handle.storage, self.handle.layout, schema_id)
