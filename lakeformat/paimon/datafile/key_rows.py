"""The manifest's facts about the rows of a primary-key table's file, besides statistics."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND

__all__ = ["KeyRows"]

LARGEST = 2**63 - 1
_DELETE_KINDS = [1, 3]


class KeyRows:
    """First and last key, sequence numbers and deletes of rows that come in the order of keys."""

    def __init__(self, key_columns: Sequence[str]) -> None:
        self._columns = list(key_columns)
        self.first: pa.Table | None = None
        self.last: pa.Table | None = None
        self.min_sequence_number = LARGEST
        self.max_sequence_number = -LARGEST
        self.delete_count = 0

    def add(self, rows: pa.Table) -> None:
        """Take the next rows into account; there is at least one."""
        keys = rows.select(self._columns)
        self.first = keys.slice(0, 1) if self.first is None else self.first
        self.last = keys.slice(rows.num_rows - 1)
        ends = pc.min_max(rows.column(SEQUENCE_NUMBER.name)).as_py()
        self.min_sequence_number = min(self.min_sequence_number, ends["min"])
        self.max_sequence_number = max(self.max_sequence_number, ends["max"])
        kinds = rows.column(VALUE_KIND.name)
        if pc.max(kinds).as_py() > 0:  # mostly all rows add
            self.delete_count += pc.sum(pc.is_in(kinds, pa.array(_DELETE_KINDS, pa.int8()))).as_py()
