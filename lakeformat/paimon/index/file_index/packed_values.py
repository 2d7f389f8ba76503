# SPDX-License-Identifier: Apache-2.0
"""Many byte strings in one buffer, which can be joined row by row without a Python loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["PackedValues"]


@dataclass(frozen=True, slots=True)
class PackedValues:
    """Byte strings in one buffer: string ``i`` is ``data[offsets[i] : offsets[i + 1]]``."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of_integers(cls, values: npt.NDArray[np.int64], width: int) -> PackedValues:
        """Return the lowest ``width`` bytes of each number, big endian."""
        data = values.astype(">i8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
        return cls(np.ascontiguousarray(data).reshape(-1), np.arange(len(values) + 1) * width)

    @classmethod
    def of_binary(cls, values: pa.LargeBinaryArray) -> PackedValues:
        """Return the values of an Arrow array without nulls."""
        if not len(values):
            return cls(np.empty(0, np.uint8), np.zeros(1, np.int64))
        _, offsets_buffer, data_buffer = values.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int64)
        offsets = offsets[values.offset : values.offset + len(values) + 1]
        data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
        return cls(data, offsets - offsets[0])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of bytes of each value."""
        return np.diff(self.offsets)

    def bytes_of(self, start: int, end: int) -> bytes:
        """Return the bytes of the values from index ``start`` up to ``end``, exclusive."""
        return self.data[self.offsets[start] : self.offsets[end]].tobytes()

    def joined(self, *others: PackedValues) -> PackedValues:
        """Return each value, followed by the values of the other columns at the same index."""
        parts = (self, *others)
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(sum(part.lengths for part in parts), out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        starts = offsets[:-1]
        for part in parts:
            moved = np.repeat(starts - part.offsets[:-1], part.lengths)
            data[np.arange(len(part.data)) + moved] = part.data
            starts = starts + part.lengths
        return PackedValues(data, offsets)
