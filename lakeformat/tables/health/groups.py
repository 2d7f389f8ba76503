# SPDX-License-Identifier: Apache-2.0
"""Files grouped by a common property, such as their partition, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Counts", "FileGroups", "Mask", "grouped"]

Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Files grouped by a common property."""

    of_file: Counts
    """The number of each file's group."""
    first: Counts
    """The position of one file of each group."""

    def __len__(self) -> int:
        return len(self.first)

    def count(self, mask: Mask) -> Counts:
        """Return the number of files of each group that a mask picks."""
        return np.bincount(self.of_file[mask], minlength=len(self)).astype(np.int64)

    def sum(self, numbers: Counts, mask: Mask) -> Counts:
        """Return the sum over the picked files of each group."""
        total = np.zeros(len(self), np.int64)
        np.add.at(total, self.of_file[mask], numbers[mask])
        return total


def grouped(codes: Counts) -> FileGroups:
    """Group files with equal codes."""
    _, first, of_file = np.unique(codes, return_index=True, return_inverse=True)
    return FileGroups(of_file, first)
