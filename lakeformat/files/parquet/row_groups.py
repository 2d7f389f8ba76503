# SPDX-License-Identifier: Apache-2.0
"""Row counts and bounds of the row groups in the footer of a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.parquet.sound_statistics import SoundStatistics
from lakeformat.types.arrow_memory import decimal_array

__all__ = ["CountGroups", "Footer", "PickGroups", "bounds_of", "leaves_of", "stored_size"]


class Footer:
    """The row groups of one file, for functions that select row groups to read."""

    def __init__(self, metadata: pq.FileMetaData, schema: pa.Schema, stored: bytes) -> None:
        self._metadata = metadata
        self._schema = schema
        self._sound = SoundStatistics(metadata, stored)
        leaves = metadata.schema
        self._leaves = {leaves.column(n).path: n for n in range(len(leaves))}

    def __len__(self) -> int:
        return int(self._metadata.num_row_groups)

    @property
    def rows(self) -> pa.Array:
        """The number of rows of each row group."""
        groups = map(self._metadata.row_group, range(len(self)))
        return pa.array([group.num_rows for group in groups], pa.int64())

    def nulls(self, column: str) -> pa.Array:
        """Return the number of nulls of a column in each row group; null where it is unknown."""
        found = (self._statistics(group, column) for group in range(len(self)))
        return pa.array(
            [s.null_count if s and s.has_null_count else None for s in found], pa.int64()
        )

    def bounds(self, column: str, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """Return the least and the greatest value of a column in each row group.

        A bound is null if it is unknown, or if the type of the column in the file is not ``kind``.
        """
        found = [self._statistics(group, column) for group in range(len(self))]
        is_same = column in self._leaves and self._schema.field(column).type == kind
        known = [s if is_same and s is not None and s.has_min_max else None for s in found]
        return bounds_of(known, kind)

    def size_bytes(self, groups: Sequence[int], columns: Sequence[str]) -> int:
        """Return the stored size of ``columns`` in bytes, in the row groups numbered ``groups``."""
        return stored_size(self._metadata, groups, leaves_of(self._metadata, columns))

    def _statistics(self, group: int, column: str) -> Any:
        leaf = self._leaves.get(column)
        return None if leaf is None else self._sound.of(group, leaf)


PickGroups: TypeAlias = Callable[[Footer, Sequence[str]], npt.NDArray[np.bool_]]
"""A function that returns a mask of the row groups: True for each that may have matching rows.

Its arguments are the footer and the columns to read.
"""


CountGroups: TypeAlias = Callable[[int, int], None]
"""A function that is called when all row groups of a file are read.

Its arguments are the number of row groups, and the stored size in bytes of the columns that were
read.
"""


def leaves_of(metadata: pq.FileMetaData, columns: Collection[str]) -> list[int]:
    """Return the numbers of the leaf columns that belong to ``columns``."""
    leaves = metadata.schema
    tops = (leaves.column(n).path.partition(".")[0] for n in range(len(leaves)))
    return [n for n, top in enumerate(tops) if top in columns]


def stored_size(metadata: pq.FileMetaData, groups: Iterable[int], leaves: Sequence[int]) -> int:
    """Return the stored size in bytes of leaf columns in row groups.

    ``leaves`` and ``groups`` are their numbers.
    """
    chunks = (metadata.row_group(group).column(leaf) for group in groups for leaf in leaves)
    return sum(int(chunk.total_compressed_size) for chunk in chunks)


def bounds_of(
    statistics: Sequence[pq.Statistics | None], kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Return the least and the greatest value of column chunks, as values of their type ``kind``.

    A bound is null if it is invalid, or if the statistics of its chunk are None.
    """
    least = [None if s is None else _value(s.min_raw, kind) for s in statistics]
    most = [None if s is None else _value(s.max_raw, kind) for s in statistics]
    return _as_array(least, kind), _as_array(most, kind)


def _value(raw: Any, kind: pa.DataType) -> Any:
    """Return the bound ``raw`` of a footer as Arrow stores a value of the type ``kind``.

    A decimal becomes its unscaled integer. Return None for a string that is cut inside of a
    character.
    """
    if pa.types.is_string(kind):
        try:
            return raw.decode()
        except UnicodeDecodeError:  # truncated inside a character
            return None
    if pa.types.is_decimal(kind):
        return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
    return raw


def _as_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(kind)
    if pa.types.is_decimal(kind):
        return decimal_array(values, kind)
    return pa.array(values, kind)
