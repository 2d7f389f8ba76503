# SPDX-License-Identifier: Apache-2.0
"""Finds the node of each key, by which rows are divided among writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.types import Field
from lakeformat.mixed.key_hash import hash_keys
from lakeformat.mixed.tree_node import bucket_mask
from lakeformat.rows.lossless_cast import cast_given

__all__ = ["WriterNodes"]


@dataclass(frozen=True, slots=True)
class WriterNodes:
    """Finds the node of each key among ``count`` nodes."""

    key: tuple[Field, ...]
    count: int
    option: str
    """The table property with the number of nodes."""

    def __call__(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """Return the index of each key's node; ``columns`` are the columns of the key.

        Raise ``InvalidRequestError`` for a column that does not fit its type.
        """
        mask = bucket_mask(self.count, self.option)
        typed = [
            cast_given(column, field.name, to_arrow_field(field).type)
            for field, column in zip(self.key, columns, strict=True)
        ]
        nodes: NDArray[np.int32] = (hash_keys(self.key, typed) & mask).astype(np.int32)
        return nodes
