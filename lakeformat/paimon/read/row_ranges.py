# SPDX-License-Identifier: Apache-2.0
"""Groups of data-evolution files that hold columns of the same rows.

Each row has an id, and the rows of a file have consecutive ids. A later file may hold other columns
of the same rows, or newer values. Files that hold the same rows form one group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import ManifestColumns, ManifestEntry
from lakeformat.paimon.metadata.manifest_columns.columns import Mask, Positions
from lakeformat.paimon.schema import TableSchema

__all__ = [
    "deletions_of",
    "is_side_file",
    "joins_columns",
    "range_rows",
    "refuse_side_file",
    "row_ranges",
    "rows_by_file",
    "shares_rows",
    "side_files",
]

_RESTORE = "restore the manifest from a backup or roll the table back to an earlier snapshot"


def joins_columns(schema: TableSchema) -> bool:
    """Return True for a data-evolution table, whose files are joined by row ids."""
    return schema.table_options.data_evolution_enabled and not schema.primary_keys


def is_side_file(name: str) -> bool:
    """Return True for the name of a file that has only blobs or only vectors."""
    return name.endswith(".blob") or ".vector." in name


def side_files(columns: ManifestColumns) -> list[str]:
    """Return the names of the files that have only blobs or vectors."""
    return [name for name in columns.file_name.texts() if name and is_side_file(name)]


def refuse_side_file(name: str, column: str | None = None) -> NoReturn:
    """Raise UnsupportedError, because a column is stored in the blob or vector file ``name``.

    ``column=None`` means that the name of the column is not known.
    """
    what = "a column" if column is None else f"column {column!r}"
    remedy = "" if column is None else "ask for the other columns, or "
    raise UnsupportedError(
        f"{what} is stored in {name}, a file for blobs or vectors that this version does not read: "
        f"{remedy}read the table with another engine"
    )


def row_ranges(files: Iterable[ManifestEntry]) -> list[tuple[ManifestEntry, ...]]:
    """Group files that hold the same rows; the groups are in the order of row ids.

    In a group, the newest file is first. Files of blobs or vectors are last, and may have only some
    of the rows. Raise CorruptTableError for a file without a first row id, and for a group that has
    only files of blobs or vectors. Raise it also if the ordinary data files of a group do not all
    hold the same range of rows.
    """
    by_start = sorted(files, key=lambda entry: _first(entry.file))
    groups: list[list[ManifestEntry]] = []
    end = -1
    for entry in by_start:
        first = _first(entry.file)
        if first >= end:
            groups.append([])
        groups[-1].append(entry)
        end = max(end, first + entry.file.row_count)
    return [_newest_first(group) for group in groups]


def range_rows(group: tuple[ManifestEntry, ...]) -> int:
    """Return the number of rows of a group, deleted rows included."""
    return group[0].file.row_count


def deletions_of(group: tuple[ManifestEntry, ...]) -> ManifestEntry:
    """Return the oldest file of a group, whose deletion vector applies to all files of the group.

    Files of blobs or vectors are not considered.
    """
    rows = [entry for entry in group if not is_side_file(entry.file.file_name)]
    return min(rows, key=lambda e: (e.file.max_sequence_number, e.file.file_name))


def shares_rows(columns: ManifestColumns) -> Mask:
    """Return a mask of the files that have rows in common with another file.

    Statistics must not exclude such a file, because the other file may have newer values.
    """
    order, again = _by_first_row(columns)
    shared = np.zeros(len(columns), np.bool_)
    shared[order[again]] = True
    shared[order[:-1][again[1:]]] = True
    return shared


def rows_by_file(schema: TableSchema, columns: ManifestColumns) -> Positions:
    """Return the number of rows to count for each file.

    Rows that several files share are counted for only one of them.
    """
    rows = columns.row_count.numbers
    if not joins_columns(schema):
        return rows
    order, again = _by_first_row(columns)
    counted = rows.copy()
    counted[order[again]] = 0
    return counted


def _by_first_row(columns: ManifestColumns) -> tuple[Positions, Mask]:
    """Return the positions of the files with row ids, sorted by first row id, and a mask.

    The mask is True for each of these files that shares rows with a file before it.
    """
    ids = columns.first_row_id
    known = np.flatnonzero(np.ones(len(columns), np.bool_) if ids.present is None else ids.present)
    order = known[np.argsort(ids.numbers[known], kind="stable")]
    starts = ids.numbers[order]
    reached = np.maximum.accumulate(starts + columns.row_count.numbers[order])
    again = np.zeros(len(order), np.bool_)
    again[1:] = starts[1:] < reached[:-1]
    return order, again


def _first(file: DataFileMeta) -> int:
    if file.first_row_id is None:
        raise CorruptTableError(
            f"data file {file.file_name} has no first row id, which 'data-evolution"
            f".enabled' needs to join files; {_RESTORE}"
        )
    return file.first_row_id


def _newest_first(group: list[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    rows = [entry for entry in group if not is_side_file(entry.file.file_name)]
    if not rows:
        raise CorruptTableError(
            f"{group[0].file.file_name} holds only blobs or vectors, but no file has the rows "
            f"that they belong to; {_RESTORE}"
        )
    one = rows[0].file
    for other in (entry.file for entry in rows[1:]):
        if (other.first_row_id, other.row_count) != (one.first_row_id, one.row_count):
            raise CorruptTableError(
                f"{one.file_name} and {other.file_name} hold {_shown(one)} and "
                f"{_shown(other)}: files that share a row must hold the same range of rows; "
                f"{_RESTORE}"
            )
    rows.sort(key=lambda entry: -entry.file.max_sequence_number)
    return (*rows, *(entry for entry in group if is_side_file(entry.file.file_name)))


def _shown(file: DataFileMeta) -> str:
    assert file.first_row_id is not None
    return f"rows {file.first_row_id} to {file.first_row_id + file.row_count - 1}"
