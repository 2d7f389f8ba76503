# SPDX-License-Identifier: Apache-2.0
"""Finds the data files to which delete files apply, from manifest entries alone.

A position delete applies to data files of the same or a lower sequence number. A deletion vector
replaces all position deletes of its data file. An equality delete applies to data files of a lower
sequence number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest import DATA, EQUALITY_DELETES, POSITION_DELETES
from lakeformat.tables.health.groups import Counts, Mask

__all__ = ["AppliedDeletes", "FileColumns", "apply_deletes"]

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """Live data files and delete files as columns, one row for each file."""

    content: Counts
    spec_id: Counts
    rows: Counts
    size: Counts
    sequence: Counts
    partition: Counts
    """The number of the file's partition, from 0 on; partitions of two specs always differ."""
    path: pa.ChunkedArray
    target: pa.ChunkedArray
    """The data file to which a position delete file applies; null if it may apply to several."""
    is_vector: Mask
    is_everywhere: Mask
    """True for equality deletes that apply to all partitions."""


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The data files to which deletes apply; each array has an element for each file."""

    has_deletes: Mask
    """True for data files to which a delete file applies."""
    has_equality_deletes: Mask
    hidden: Counts
    """For each data file the number of rows deleted by its deletion vector, and by position deletes
    for this file alone.
    """
    hidden_rows: int
    """The number of positions in position deletes and deletion vectors that apply to data files."""
    dangling: Mask
    """True for delete files that apply to no data file."""


def apply_deletes(files: FileColumns) -> AppliedDeletes:
    """Return the data files to which delete files apply, and the dangling delete files.

    A delete file is dangling if it applies to no data file.
    """
    is_data = files.content == DATA
    dangling = np.zeros(len(is_data), np.bool_)
    hidden = np.zeros(len(is_data), np.int64)
    if is_data.all():
        return AppliedDeletes(dangling, dangling, hidden, 0, dangling)
    has_vector, hits = _of_single_files(files, hidden, dangling)
    by_position = has_vector | hits | _of_partitions(files, is_data & ~has_vector, dangling)
    by_equality = _by_equality(files, is_data, dangling)
    applied = (files.content == POSITION_DELETES) & ~dangling
    return AppliedDeletes(
        by_position | by_equality, by_equality, hidden, int(files.rows[applied].sum()), dangling
    )


def _of_single_files(files: FileColumns, hidden: Counts, dangling: Mask) -> tuple[Mask, Mask]:
    """Find the data files of deletion vectors, and of position deletes for a single data file.

    The number of deleted rows is added to ``hidden`` for each data file. A delete file is marked in
    ``dangling`` if its data file is missing or newer. A position delete is also marked if its data
    file has a deletion vector. Return a mask of the data files with a vector, and a mask of the
    data files to which position deletes apply.
    """
    has_target = files.target.is_valid().to_numpy() & (files.content == POSITION_DELETES)
    deletes, data = np.flatnonzero(has_target), np.flatnonzero(files.content == DATA)
    found = pc.index_in(
        files.target.take(pa.array(deletes)), files.path.take(pa.array(data)).combine_chunks()
    )
    at = np.asarray(pc.fill_null(found, -1).to_numpy(), np.int64)
    place = np.where(at >= 0, data[at], 0) if len(data) else np.zeros(len(deletes), np.int64)
    applies = (at >= 0) & (files.sequence[place] <= files.sequence[deletes])
    has_vector, hits = np.zeros((2, len(hidden)), np.bool_)
    vectors = files.is_vector[deletes]
    has_vector[place[applies & vectors]] = True
    applies &= vectors | ~has_vector[place]
    hits[place[applies & ~vectors]] = True
    np.add.at(hidden, place[applies], files.rows[deletes[applies]])
    dangling[deletes[~applies]] = True
    return has_vector, hits


def _of_partitions(files: FileColumns, is_open: Mask, dangling: Mask) -> Mask:
    """Apply position deletes that may be for many data files of their partition.

    ``is_open`` is a mask of the data files without deletion vectors. A delete file is marked in
    ``dangling`` if it is older than all such data files of its partition. Return a mask of the data
    files to which the deletes apply.
    """
    has_target = files.target.is_valid().to_numpy()
    deletes = np.flatnonzero((files.content == POSITION_DELETES) & ~has_target)
    newest = _extreme(np.maximum, files, deletes, -1)
    oldest = _extreme(np.minimum, files, np.flatnonzero(is_open), _NEVER)
    dangling[deletes] = files.sequence[deletes] < oldest[files.partition[deletes]]
    hits: Mask = is_open & (files.sequence <= newest[files.partition])
    return hits


def _by_equality(files: FileColumns, is_data: Mask, dangling: Mask) -> Mask:
    """Return a mask of the data files to which equality deletes apply.

    ``is_data`` is a mask of all data files. A delete file applies to the older data files of its
    partition, or of all partitions. If there are none, the delete file is marked in ``dangling``.
    """
    is_equality = files.content == EQUALITY_DELETES
    deletes = np.flatnonzero(is_equality & ~files.is_everywhere)
    newest = _extreme(np.maximum, files, deletes, -1)
    oldest = _extreme(np.minimum, files, np.flatnonzero(is_data), _NEVER)
    dangling[deletes] = files.sequence[deletes] <= oldest[files.partition[deletes]]
    newest_of_all = int(files.sequence[files.is_everywhere].max(initial=-1))
    oldest_of_all = int(files.sequence[is_data].min(initial=_NEVER))
    dangling[files.is_everywhere] = files.sequence[files.is_everywhere] <= oldest_of_all
    hits: Mask = is_data & (files.sequence < np.maximum(newest[files.partition], newest_of_all))
    return hits


def _extreme(of: np.ufunc, files: FileColumns, places: Counts, without: int) -> Counts:
    """Return for each partition the largest or smallest sequence number of the files at ``places``.

    ``of`` is ``np.maximum`` or ``np.minimum``. A partition without such files gets ``without``.
    """
    found = np.full(int(files.partition.max(initial=0)) + 1, without, np.int64)
    of.at(found, files.partition[places], files.sequence[places])
    return found
