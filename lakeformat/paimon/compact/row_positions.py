# SPDX-License-Identifier: Apache-2.0
"""Finds the positions of replaced rows in their files, for deletion vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.rows.groups import Mask, Positions

__all__ = ["PLACE_COLUMNS", "MarkedRows", "PositionedRows", "with_places"]

_FILE, _ROW = "_FILE", "_ROW"
PLACE_COLUMNS = (_FILE, _ROW)
"""The columns with the number of a row's file, and with the position of the row in that file."""


class PositionedRows(DeletedRows):
    """Applies deletion vectors, and keeps in ``last`` the positions of the last batch's rows."""

    last: Positions

    def keep(self, file: ManifestEntry) -> Callable[[int, int], Mask] | None:
        kept = super().keep(file)

        def remembering(start: int, count: int) -> Mask:
            mask = np.ones(count, np.bool_) if kept is None else kept(start, count)
            self.last = start + np.flatnonzero(mask)
            return mask

        return remembering


def with_places(batch: pa.RecordBatch, file: int, rows: Positions | None) -> pa.RecordBatch:
    """Return the batch with the columns ``PLACE_COLUMNS``.

    ``file`` is the number of the file, and ``rows`` are the positions of the rows in it.
    ``rows=None`` is for rows that are never replaced.
    """
    positions = np.zeros(batch.num_rows, np.int64) if rows is None else rows
    files = pa.array(np.full(batch.num_rows, file, np.int32))
    schema = batch.schema.append(pa.field(_FILE, pa.int32()))
    return pa.RecordBatch.from_arrays(
        [*batch.columns, files, pa.array(positions)],
        schema=schema.append(pa.field(_ROW, pa.int64())),
    )


@dataclass(slots=True)
class MarkedRows:
    """Collects the replaced rows of files of higher levels."""

    names: list[str] = field(default_factory=list)
    """The names of the files; the index of a name is the number of the file."""
    _found: dict[int, list[Positions]] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Add the file ``name``, and return its number for the column of file numbers."""
        self.names.append(name)
        return len(self.names) - 1

    def add(self, rows: pa.Table, superseded: Positions) -> None:
        """Record the rows at the indexes ``superseded``; ``rows`` has the columns
        ``PLACE_COLUMNS``.
        """
        places = rows.select(PLACE_COLUMNS).take(pa.array(superseded))
        files, positions = (places[name].to_numpy() for name in PLACE_COLUMNS)
        for number in np.unique(files).tolist():
            self._found.setdefault(number, []).append(positions[files == number])

    def by_file(self) -> dict[str, Positions]:
        """Return the row positions to add to deletion vectors, by file name."""
        by_name: dict[str, list[Positions]] = {}
        for number, parts in self._found.items():
            by_name.setdefault(self.names[number], []).extend(parts)
        return {name: np.concatenate(parts) for name, parts in by_name.items()}
