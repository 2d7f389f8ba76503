# SPDX-License-Identifier: Apache-2.0
"""Groups files that have a property in common, such as their partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Counts", "FileGroups", "Mask", "grouped"]

Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Groups of files; each group has a number, from 0 on."""

    of_file: Counts
    """For each file, the number of its group."""
    first: Counts
    """For each group, the index of its first file."""

    def __len__(self) -> int:
        return len(self.first)

    def count(self, mask: Mask) -> Counts:
        """Return for each group the number of its files for which ``mask`` is True."""
        return np.bincount(self.of_file[mask], minlength=len(self)).astype(np.int64)

    def sum(self, numbers: Counts, mask: Mask) -> Counts:
        """Return for each group the sum of ``numbers``, which has one number for each file.

        Files for which ``mask`` is False are not counted.
        """
        total = np.zeros(len(self), np.int64)
        np.add.at(total, self.of_file[mask], numbers[mask])
        return total


def grouped(codes: Counts) -> FileGroups:
    """Return groups of files; ``codes`` has a code for each file, and equal codes make a group."""
    _, first, of_file = np.unique(codes, return_index=True, return_inverse=True)
    return FileGroups(of_file, first)
