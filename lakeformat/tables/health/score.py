# SPDX-License-Identifier: Apache-2.0
"""The score of a table, from 0 (worst) to 100 (best).

For each partition, N is the number of files that a compaction would still rewrite. These files have
S bytes and R rows. ``deletes`` is the number of deletes that a read must merge: delete rows, or
keys of equality deletes. ``hidden`` is the number of rows that deletion vectors or position deletes
mark as deleted. ``norm(a, b)`` is ``min(a, b) / b``.

    f             = 0 if N <= 1 else norm(N, enough files) * norm(S, enough bytes)
    small_files   = ceil(40 - 40 * f * (1 - norm(S / N, enough bytes)))
    rows_to_merge = ceil(40 - 40 * f * norm(deletes / R, 0.1))
    hidden_rows   = ceil(20 - 20 * f * norm(hidden / R, 0.2))

``Pending`` has the values of ``enough files`` and ``enough bytes``. In Mixed tables, the value of
an option is used instead of 0.1, and twice that value instead of 0.2. Each of these three parts is
averaged over the partitions and rounded up. The three parts are 100 in total if no file must be
rewritten.

The fourth part subtracts points for history that should have been deleted. In Iceberg and Mixed
tables, ``u`` is the share of the snapshots that should have been deleted. In Paimon tables, such a
share is also computed for the changelogs and for the bytes of the files, and ``u`` is the largest
of these shares.

    history = -ceil(20 * u)

A negative sum of the four parts counts as 0. The sum is then limited to the range of the verdict:
see ``verdict.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

__all__ = ["BYTES_PART", "ENOUGH_FILES", "Pending", "Score", "score"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

ENOUGH_FILES = 12
"""The value of ``enough files``: if N is at least this number, ``norm(N, enough files)`` is 1.

In Paimon tables with a primary key, and in Mixed tables, the value depends on an option instead.
"""
BYTES_PART = 0.75
"""A file is large enough if its size is at least this share of the target size."""

_SMALL_POINTS, _MERGE_POINTS, _HIDDEN_POINTS = 40, 40, 20
_HISTORY_POINTS = 20
_MOST_DELETES = 0.1
_DIGITS = 9
"""The number of decimal places that rounding up considers: 32.00000000001 must not become 33."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Counts of the files that a compaction would still rewrite, one array element for each
    partition.
    """

    files: Counts
    bytes: Counts
    rows: Counts
    deletes: Counts
    hidden: Counts
    enough_files: Floats
    """The value of ``enough files`` for each partition, see the formulas of the module."""
    enough_bytes: float
    """The size in bytes at which a file is large enough."""
    many_deletes: float = _MOST_DELETES
    """The ratio of deletes to rows in the formula of ``rows_to_merge``.

    The formula of ``hidden_rows`` uses twice this ratio.
    """


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of the score."""

    small_files: int = _SMALL_POINTS
    """The points for small files: 40 if no partition has files to rewrite, 0 at worst."""
    rows_to_merge: int = _MERGE_POINTS
    """The points for deletes that reads must merge: 40 without such deletes, 0 at worst."""
    hidden_rows: int = _HIDDEN_POINTS
    """The points for rows that are marked as deleted: 20 without such rows, 0 at worst."""
    history: int = 0
    """The points for history that should have been deleted: 0 without such history, -20 at
    worst.
    """

    @property
    def total(self) -> int:
        return max(self.small_files + self.rows_to_merge + self.hidden_rows + self.history, 0)

    def with_history(self, undeleted: float) -> Score:
        """Return the score with ``history`` set.

        ``undeleted`` is the share of history that should have been deleted, from 0 to 1.
        """
        return replace(self, history=-math.ceil(round(_HISTORY_POINTS * undeleted, _DIGITS)))


def score(pending: Pending) -> Score:
    """Return the points for files and rows; 100 in total if no partition has files to rewrite."""
    if not len(pending.files):
        return Score()
    enough = np.full(len(pending.files), pending.enough_bytes)
    many = _norm(pending.files, pending.enough_files) * _norm(pending.bytes, enough)
    many[pending.files <= 1] = 0
    usual = _ratio(pending.bytes, pending.files)
    deletes = _ratio(pending.deletes, pending.rows)
    hidden = _ratio(pending.hidden, pending.rows)
    most = np.full(len(many), pending.many_deletes)
    return Score(
        _points(_SMALL_POINTS, many * (1 - _norm(usual, enough))),
        _points(_MERGE_POINTS, many * _norm(deletes, most)),
        _points(_HIDDEN_POINTS, many * _norm(hidden, 2 * most)),
    )


def _points(most: int, badness: Floats) -> int:
    return int(_up(np.atleast_1d(_up(most - most * badness).mean()))[0])


def _up(numbers: Floats) -> Floats:
    rounded: Floats = np.ceil(np.round(numbers, _DIGITS))
    return rounded


def _norm(numbers: npt.NDArray[np.generic], most: Floats) -> Floats:
    return _ratio(np.minimum(numbers, most), most)


def _ratio(numbers: npt.NDArray[np.generic], of: npt.NDArray[np.generic]) -> Floats:
    """Return ``numbers / of``; 0 where ``of`` is 0."""
    found: Floats = np.divide(numbers, of, out=np.zeros(len(numbers)), where=np.asarray(of) > 0)
    return found
