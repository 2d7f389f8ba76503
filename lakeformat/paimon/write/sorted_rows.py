# SPDX-License-Identifier: Apache-2.0
"""Sorts rows of many buckets, bucket by bucket, by key and then by age."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.write.assign import RowsByPlace
from lakeformat.paimon.write.row_buffer import BufferedRows
from lakeformat.rows.groups import KeyGroups, Positions
from lakeformat.rows.take_rows import take_rows

__all__ = ["SortedRows", "part_of", "sort_rows"]


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows in arrival order, and the sorted order of the rows of each place.

    A place is a bucket of a partition.
    """

    rows: pa.Table
    """The columns ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``, then those of the table."""
    by_place: RowsByPlace
    order: MergeOrder

    def __iter__(self) -> Iterator[tuple[int, KeyGroups]]:
        """Yield each place number with the key groups of its rows.

        A place is sorted when it is requested, so that the keys of a bucket remain in the CPU
        cache.
        """
        compared = self.rows.select([*self.order.keys, *self.order.sequence])
        if len(self.by_place.places) == 1:  # the rows of all places are in arrival order
            yield int(self.by_place.places[0]), self.order.group(compared, numbered=False)
            return
        for place, positions in self.by_place:
            groups = self.order.group(take_rows(compared, positions), numbered=False)
            yield place, KeyGroups(positions[groups.order], groups.starts)


def sort_rows(
    held: BufferedRows, by_place: RowsByPlace, order: MergeOrder, numbers: Positions
) -> SortedRows:
    """Return buffered rows sorted by ``order``; ``numbers`` has the sequence number of each row.

    In a bucket, the numbers must not decrease from one row to the next.
    """
    rows = held.rows.add_column(0, VALUE_KIND.name, pa.array(held.kinds))
    rows = rows.add_column(0, SEQUENCE_NUMBER.name, pa.array(numbers))
    return SortedRows(rows, by_place, order)


def part_of(groups: KeyGroups, first: int, end: int) -> KeyGroups:
    """Return the groups of the keys from number ``first`` up to ``end``, exclusive."""
    start = groups.starts[first]
    stop = groups.starts[end] if end < len(groups) else len(groups.order)
    return KeyGroups(groups.order[start:stop], groups.starts[first:end] - start)
