# SPDX-License-Identifier: Apache-2.0
"""Finds the nodes of the keys that a condition names, so that a lookup reads only their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.read.condition_fields import condition_type
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.mixed.key_hash import hash_keys
from lakeformat.mixed.tree_node import TreeNode
from lakeformat.rows.prune import ColumnTest, Conjunction, Op
from lakeformat.types.values import Value, values_to_arrow

__all__ = ["NodeFilter"]

_EXACT = frozenset(
    {"boolean", "int", "long", "string", "decimal", "date", "timestamp", "timestamptz", "binary"}
)
"""The types whose equal values always have equal hashes. Floats are excluded: 0.0 equals -0.0, but
has another hash.
"""
_MOST_KEYS = 4096
"""The largest number of keys that are hashed for a condition. More keys would be in most nodes, so
hardly any file would be skipped.
"""


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """The hashes of the keys to read."""

    hashes: NDArray[np.int64] | None
    """The hashes; None if any key may be read."""

    @classmethod
    def of(cls, key: Sequence[Field], conditions: Conjunction) -> NodeFilter:
        """Return the filter for the keys that ``conditions`` list.

        It accepts every node if ``conditions`` do not list values of all key columns, or list too
        many keys.
        """
        listed = [_values(field, conditions) for field in key]
        values = [each for each in listed if each is not None]
        if len(values) < len(key) or np.prod([len(each) for each in values]) > _MOST_KEYS:
            return cls(None)
        keys = [*product(*values)]
        columns = [
            _column(field, [each[place] for each in keys]) for place, field in enumerate(key)
        ]
        return cls(hash_keys(key, columns))

    def may_have_keys(self, node: TreeNode) -> bool:
        """Return True if the node may have a key that is read."""
        return self.hashes is None or bool(((self.hashes & node.mask) == node.index).any())


def _values(field: Field, conditions: Conjunction) -> list[Value] | None:
    """Return the only values that ``conditions`` allow in a key column; None if unknown."""
    if not isinstance(field.type, PrimitiveType) or field.type.name not in _EXACT:
        return None
    for test in conditions:
        if not isinstance(test, ColumnTest) or test.column != field.name:
            continue
        if test.op is Op.EQUAL and test.literal is not None:
            return [test.literal]
        if test.op is Op.IN:
            return [each for each in test.literal if each is not None]
    return None


def _column(field: Field, values: Sequence[Value]) -> pa.Array:
    literals = values_to_arrow(values, condition_type(field.type))
    return literals.cast(to_arrow_type(field.type))
