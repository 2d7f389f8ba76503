# SPDX-License-Identifier: Apache-2.0
"""Selects rows of a file by position; row groups without a selected row are not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakeformat.files.parquet.row_groups import Footer
from lakeformat.rows.groups import Mask, Positions

__all__ = ["RowPositions"]


@dataclass(frozen=True, slots=True)
class RowPositions:
    """Positions of rows in a file, in ascending order."""

    positions: Positions

    def holds(self, rows: Positions) -> Mask:
        """Return a mask of ``rows``, which are positions: True for the selected positions."""
        places = np.searchsorted(self.positions, rows)
        known = places < len(self.positions)
        mask = np.zeros(len(rows), np.bool_)
        mask[known] = self.positions[places[known]] == rows[known]
        return mask

    def keep(self, start: int, count: int) -> Mask:
        """Return a mask of the selected rows among ``count`` rows, from position ``start`` on."""
        first, end = np.searchsorted(self.positions, [start, start + count])
        mask = np.zeros(count, np.bool_)
        mask[self.positions[first:end] - start] = True
        return mask

    def pick(self, footer: Footer, _: Sequence[str]) -> Mask:
        """Return a mask of the row groups of a Parquet file that have selected rows."""
        ends = np.cumsum(footer.rows.to_numpy())
        before = np.searchsorted(self.positions, np.append(0, ends))
        mask: Mask = np.diff(before) > 0
        return mask
