# SPDX-License-Identifier: Apache-2.0
"""Divides files into sections that share no keys, and the files of each section into few sorted
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.referrer import naming_row
from lakeformat.rows.groups import Positions
from lakeformat.rows.key_words import column_words
from lakeformat.rows.word_order import sort_by_words
from lakeformat.types.types import DataType

__all__ = ["Run", "Section", "is_interleaved", "key_sections", "overlapping"]

Run: TypeAlias = tuple[int, ...]
"""Files whose key ranges do not overlap, in key order, as positions in a list of files."""

Section: TypeAlias = tuple[Run, ...]
"""Files whose key ranges overlap, directly or through other files, divided into runs.

No key of a section is in a file of another section.
"""


def key_sections(files: Sequence[DataFileMeta], key_types: Sequence[DataType]) -> list[Section]:
    """Divide files into sections with separate key ranges, in key order.

    The runs of a section are sorted by their largest sequence number: the oldest run is first.
    Raise CorruptTableError for a file whose first key is greater than its last key.
    """
    if not files:
        return []
    least, most = _ranks(files, key_types)
    sections: list[list[int]] = []
    reached = -1
    for position in np.lexsort((most, least)).tolist():
        if not sections or least[position] > reached:
            sections.append([])
        sections[-1].append(position)
        reached = max(reached, int(most[position]))
    return [_by_age(_runs(section, least, most), files) for section in sections]


def overlapping(
    files: Sequence[DataFileMeta], others: Sequence[DataFileMeta], key_types: Sequence[DataType]
) -> list[int]:
    """Return the positions, in the second list, of the files that may share keys with ``files``.

    The positions are in key order.
    """
    least, most = _ranks([*files, *others], key_types)
    starts, ends = least[: len(files)], most[: len(files)]
    found = []
    for position in np.argsort(least[len(files) :], kind="stable").tolist():
        first, last = least[len(files) + position], most[len(files) + position]
        if ((starts <= last) & (ends >= first)).any():
            found.append(position)
    return found


def is_interleaved(runs: Sequence[Sequence[DataFileMeta]]) -> bool:
    """Return True if the sequence numbers of two runs overlap; runs are given oldest first."""
    newest: int | None = None
    for run in runs:
        if newest is not None and min(file.min_sequence_number for file in run) <= newest:
            return True
        newest = max(file.max_sequence_number for file in run)
    return False


def _runs(section: Sequence[int], least: Positions, most: Positions) -> list[list[int]]:
    """Divide the files of a section into as few runs as possible.

    ``least`` and ``most`` have the ranks of the first and last key of each file. A file is appended
    to the run with the smallest last key if this key is smaller than the first key of the file.
    Otherwise, the file begins a new run.
    """
    runs: list[list[int]] = []
    ends: list[tuple[int, int]] = []
    for position in section:
        if ends and ends[0][0] < least[position]:
            _, number = heappop(ends)
            runs[number].append(position)
        else:
            number = len(runs)
            runs.append([position])
        heappush(ends, (int(most[position]), number))
    return runs


def _by_age(runs: list[list[int]], files: Sequence[DataFileMeta]) -> Section:
    def newest(run: list[int]) -> tuple[int, int]:
        return (
            max(files[position].max_sequence_number for position in run),
            max(files[position].min_sequence_number for position in run),
        )

    return tuple(tuple(run) for run in sorted(runs, key=newest))


def _ranks(
    files: Sequence[DataFileMeta], key_types: Sequence[DataType]
) -> tuple[Positions, Positions]:
    """Return the rank of the first key of each file, and the rank of the last key of each file.

    All first and last keys are ranked together, so any two ranks can be compared. Raise
    CorruptTableError for a file whose first key is greater than its last key.
    """
    framed = [file.min_key for file in files] + [file.max_key for file in files]
    with naming_row(
        len(framed), lambda row: _columns(framed[row : row + 1], key_types), _named(files)
    ):
        columns = _columns(framed, key_types)
    words = (word for column in columns for word in column_words(column))
    groups = sort_by_words(words, len(framed))
    ranks = np.empty(len(framed), np.int64)
    ranks[groups.order] = groups.key_of
    least, most = ranks[: len(files)], ranks[len(files) :]
    if (least > most).any():
        file = files[int(np.flatnonzero(least > most)[0])]
        raise CorruptTableError(
            f"the manifest entry of data file {file.file_name} is damaged: its first key is "
            "greater than its last key; restore the manifest from a backup, or roll the table back "
            "to an earlier snapshot"
        )
    return least, most


def _columns(framed: Sequence[bytes], key_types: Sequence[DataType]) -> list[pa.Array]:
    rows = FramedRows(pa.array(framed, pa.binary()), key_types)
    return [rows.column(position) for position in range(len(key_types))]


def _named(files: Sequence[DataFileMeta]) -> Callable[[int], str]:
    def name(row: int) -> str:
        end, position = divmod(row, len(files))
        return f"{('_MIN_KEY', '_MAX_KEY')[end]} of data file {files[position].file_name}"

    return name
