# SPDX-License-Identifier: Apache-2.0
"""The contract of a function that divides rows among writers by their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["WriterBuckets"]


class WriterBuckets(Protocol):
    """Finds the bucket of each key; the rows of a bucket must have one writer.

    It can be pickled for another process.
    """

    @property
    def count(self) -> int:
        """The number of buckets."""
        ...

    def __call__(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """Return the bucket of each row, from 0 on; ``columns`` are the columns of the key."""
        ...
