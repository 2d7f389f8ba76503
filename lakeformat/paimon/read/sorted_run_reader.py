# SPDX-License-Identifier: Apache-2.0
"""Reads sorted runs with the system columns that a merge needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER
from lakeformat.paimon.merge.looked_up import with_level
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.row_filter import RowFilter
from lakeformat.rows.prune import Conjunction
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.types import DataField

__all__ = ["Filters", "RunReader", "conditions", "meeting"]

Filters = Sequence[RowFilter]


@dataclass(frozen=True, slots=True)
class RunReader:
    """Reads the sorted runs of one merge."""

    files: DataFiles
    fields: tuple[DataField, ...]
    filters: Filters
    """Only rows that meet all of these conditions are returned."""
    batch_rows: int
    numbers: bool
    """True to read the sequence numbers."""
    zeros: bool
    """True to add sequence numbers 0 if ``numbers`` is False, for engines that need the column."""
    carried: Collection[str]
    """Names of columns that may remain dictionary-encoded."""
    levels: bool = False
    """True to add the column ``_LEVEL`` with the level of each row's file."""

    def read(self, run: Sequence[ManifestEntry]) -> Iterator[pa.RecordBatch]:
        """Stream the rows of all files of a run."""
        for entry in run:
            rows = self._rows(entry)
            if self.levels:
                rows = map(partial(with_level, level=entry.file.level), rows)
            yield from meeting(rows, self.filters)

    def _rows(self, entry: ManifestEntry) -> Iterator[pa.RecordBatch]:
        rows = self.files.key_values(
            entry,
            self.fields,
            conditions(self.filters),
            self.batch_rows,
            numbered=self.numbers,
            encoded=self.carried,
        )
        return map(_with_no_number, rows) if self.zeros and not self.numbers else rows


def conditions(filters: Filters) -> Conjunction:
    """Return, for all filters, the conditions by which files and row groups may be skipped."""
    return [condition for each in filters for condition in each.conditions()]


def meeting(batches: Iterator[pa.RecordBatch], filters: Filters) -> Iterator[pa.RecordBatch]:
    """Yield the rows that meet all filters; empty batches are dropped."""
    for batch in batches:
        if filters:
            masks = (each.mask(batch) for each in filters)
            batch = batch.filter(reduce(pc.and_kleene, masks))
        if batch.num_rows:
            yield batch


def _with_no_number(rows: pa.RecordBatch) -> pa.RecordBatch:
    nothing = pa.array(np.zeros(rows.num_rows, np.int64))
    schema = to_arrow_schema((SEQUENCE_NUMBER,))
    return pa.RecordBatch.from_arrays(
        [nothing, *rows.columns], schema=pa.schema([*schema, *rows.schema])
    )
