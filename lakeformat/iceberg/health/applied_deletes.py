# SPDX-License-Identifier: Apache-2.0
"""Finds the data files that delete files apply to, by partition and sequence number alone.

A position delete applies to data files that are not newer; a deletion vector replaces all position
deletes of its file; an equality delete applies to older data files. No bounds of keys are
compared, as in Java's removal of dangling deletes.
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
    """Live data and delete files, one row each."""

    content: Counts
    spec_id: Counts
    rows: Counts
    size: Counts
    sequence: Counts
    partition: Counts
    """A number for each partition of each spec, counted from 0."""
    path: pa.ChunkedArray
    target: pa.ChunkedArray
    """The only data file of position deletes; null for those of a whole partition."""
    is_vector: Mask
    is_everywhere: Mask
    """True for equality deletes of all partitions."""


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The effect of the deletes; each mask and count has a row for each file."""

    has_deletes: Mask
    """True for data files that a delete applies to."""
    has_equality_deletes: Mask
    hidden: Counts
    """Rows of each data file that vectors and position deletes of this file hide."""
    hidden_rows: int
    """Rows that vectors and position deletes hide, also those of whole partitions."""
    dangling: Mask
    """True for delete files that apply to no data file."""


def apply_deletes(files: FileColumns) -> AppliedDeletes:
    """Find out which delete files apply to which data files."""
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
    """Apply the deletes of single data files; return the files with a vector, and those with
    position deletes that apply.
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
    """Apply the position deletes of whole partitions to files without a vector."""
    has_target = files.target.is_valid().to_numpy()
    deletes = np.flatnonzero((files.content == POSITION_DELETES) & ~has_target)
    newest = _extreme(np.maximum, files, deletes, -1)
    oldest = _extreme(np.minimum, files, np.flatnonzero(is_open), _NEVER)
    dangling[deletes] = files.sequence[deletes] < oldest[files.partition[deletes]]
    hits: Mask = is_open & (files.sequence <= newest[files.partition])
    return hits


def _by_equality(files: FileColumns, is_data: Mask, dangling: Mask) -> Mask:
    """Apply equality deletes to older files of their partition, or of all."""
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
    """Return the greatest or least sequence number of the files at ``places``, by partition;
    ``without`` for a partition without such files.
    """
    found = np.full(int(files.partition.max(initial=0)) + 1, without, np.int64)
    of.at(found, files.partition[places], files.sequence[places])
    return found
