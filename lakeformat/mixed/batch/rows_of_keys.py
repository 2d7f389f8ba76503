# SPDX-License-Identifier: Apache-2.0
"""All rows of the keys that a DELETE or an UPDATE changes, if a key can have several rows.

A delete in the change store removes every row of its key in the partition. So the rows that do not
meet the condition must be written again after the delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.read.equality_keys import EqualityKeys, comparable
from lakeformat.mixed.read.node_splits import NodeSplit
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.read.state import MixedState
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.types.arrow_memory import array_of

__all__ = ["RowsOfKeys"]


class RowsOfKeys:
    """All rows that have the same key and partition as a row that meets a condition."""

    def __init__(self, state: MixedState, where: PredicateFilter | None) -> None:
        """Read the keys of the rows that meet ``where``, or of all rows if ``where`` is None.

        All of these keys are kept in memory.
        """
        self._state = state
        self._names = [each.name for each in state.key]
        self.matching = 0
        """The number of rows that meet the condition."""
        self.keys = 0
        """The number of different keys of the rows that meet the condition; a key in several
        partitions counts once in each of them.
        """
        self._of_partition: dict[str, EqualityKeys] = {}
        asked = MixedScan(state, self._names, where)
        found: dict[str, list[pa.RecordBatch]] = {}
        for split in asked.splits():
            found.setdefault(_partition(split), []).extend(asked.read(split))
        for partition, batches in found.items():
            keys = pa.Table.from_batches(batches, asked.schema).combine_chunks()
            columns = [pa.concat_arrays(each.chunks) for each in keys.columns if each.num_chunks]
            if not columns:
                continue
            self._of_partition[partition] = EqualityKeys(columns, np.zeros(len(keys), np.int64))
            self.matching += len(keys)
            self.keys += _distinct(columns)

    def count(self) -> int:
        """Return the number of rows, including those that do not meet the condition."""
        return sum(batch.num_rows for _, batch in self._read(self._names))

    def read(self) -> Iterator[tuple[NodeSplit, pa.RecordBatch]]:
        """Stream the rows as record batches, each with its split."""
        return self._read(None)

    def _read(self, columns: Sequence[str] | None) -> Iterator[tuple[NodeSplit, pa.RecordBatch]]:
        scan = MixedScan(self._state, columns)
        for split in scan.splits():
            keys = self._of_partition.get(_partition(split))
            if keys is None:
                continue
            for batch in scan.read(split):
                has_key = keys.numbers([batch.column(name) for name in self._names]) >= 0
                if has_key.any():
                    yield split, batch.filter(array_of(has_key))


def _partition(split: NodeSplit) -> str:
    """Return the partition values, which are the same even after a partition field is renamed."""
    return split.files[0].values


def _distinct(columns: Sequence[pa.Array]) -> int:
    names = [str(number) for number in range(len(columns))]
    keys = pa.table([comparable(each) for each in columns], names)
    return int(keys.group_by(names).aggregate([]).num_rows)
