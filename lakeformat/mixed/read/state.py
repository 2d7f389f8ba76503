# SPDX-License-Identifier: Apache-2.0
"""The state of a Mixed table that a scan reads: a snapshot of each store."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field
from lakeformat.mixed.stores.optimized_sequences import OptimizedSequences
from lakeformat.tables.position import Position

__all__ = ["MixedState"]


@dataclass(frozen=True, slots=True)
class MixedState:
    """A snapshot of each store, read with one schema."""

    base: TableState
    change: TableState
    key: tuple[Field, ...]
    """The key columns, in the order of the key."""
    merged: OptimizedSequences
    """The changes that are merged into the base store at its snapshot."""
    position: Position
    version: Field | None = None
    """The version field: of two rows with one key, the row with the larger value is the newer one;
    None if transactions alone order the changes.
    """

    @property
    def schema(self) -> Schema:
        """The schema of the rows; both stores have its columns under the same ids."""
        return self.base.schema

    def with_schema(self, schema: Schema) -> MixedState:
        """Return the state, read with another schema of the table."""
        base, change = (replace(each, schema=schema) for each in (self.base, self.change))
        return replace(self, base=base, change=change)

    @property
    def snapshot_ids(self) -> tuple[int | None, int | None]:
        """The ids of the snapshots of the base store and of the change store."""
        snapshots = (self.base.snapshot, self.change.snapshot)
        base, change = (None if each is None else each.snapshot_id for each in snapshots)
        return base, change
