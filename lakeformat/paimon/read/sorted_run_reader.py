"""Reads sorted runs of files, with what a merge has to know of their rows."""

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
    """Reads runs for one merge."""

    files: DataFiles
    fields: tuple[DataField, ...]
    filters: Filters
    """Rows that do not meet them are left out."""
    batch_rows: int
    numbers: bool
    """Whether rows come with their numbers; decoding those takes longer than merging rows."""
    zeros: bool
    """Whether they come with the number 0 otherwise, for engines that hand numbers on."""
    carried: Collection[str]
    """Columns whose texts may come as dictionaries."""
    levels: bool = False
    """Whether rows come with the level of their file."""

    def read(self, run: Sequence[ManifestEntry]) -> Iterator[pa.RecordBatch]:
        """The rows of all files of a run."""
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
    """What all of the filters ask for, as files can be pruned by it."""
    return [condition for each in filters for condition in each.conditions()]


def meeting(batches: Iterator[pa.RecordBatch], filters: Filters) -> Iterator[pa.RecordBatch]:
    """The rows that meet all filters; no batch is empty."""
    for batch in batches:
        if filters:
            masks = (each.mask(batch) for each in filters)
            batch = batch.filter(reduce(pc.and_kleene, masks))
        if batch.num_rows:
            yield batch


def _with_no_number(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with a sequence number that says nothing."""
    nothing = pa.array(np.zeros(rows.num_rows, np.int64))
    schema = to_arrow_schema((SEQUENCE_NUMBER,))
    return pa.RecordBatch.from_arrays(
        [nothing, *rows.columns], schema=pa.schema([*schema, *rows.schema])
    )
