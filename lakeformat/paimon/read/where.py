# SPDX-License-Identifier: Apache-2.0
"""Makes the condition of a scan from the arguments ``where`` and ``partitions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.partition_filter import some_partitions
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import (
    PredicateFilter,
    Where,
    as_predicate,
    bind_predicate,
)
from lakeformat.rows.conditions.predicate import And, Compare, Constant, IsIn, IsNull, Or, Predicate
from lakeformat.rows.prune import Op
from lakeformat.tables.arguments import Partitions
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["row_filter"]


def row_filter(
    schema: TableSchema,
    where: Where | None,
    partitions: Partitions | None,
    more_fields: tuple[DataField, ...] = (),
) -> PredicateFilter | None:
    """Return one condition that requires both ``where`` and ``partitions``; None if both are None.

    ``where`` may use the columns of the table and ``more_fields``, which the table does not store.
    Raise InvalidRequestError for a condition or a partition that is not valid.
    """
    asked: list[Predicate] = []
    if partitions is not None:
        asked.append(_of_partitions(schema, partitions))
    fields = (*schema.fields, *more_fields)
    if where is not None:
        # Check it alone first, so that errors quote the user's condition.
        asked.append(as_predicate(where))
        bind_predicate(asked[-1], fields)
    return bind_predicate(And(tuple(asked)), fields) if asked else None


def _of_partitions(schema: TableSchema, partitions: Partitions) -> Predicate:
    is_list = isinstance(partitions, Sequence) and not isinstance(partitions, str)
    given: Any = partitions if is_list else [partitions]
    specs = some_partitions(schema, given).specs  # this call raises for invalid partitions
    fields = partition_fields(schema)
    alternatives: list[Predicate] = []
    for spec in specs:
        parts = [_equals(fields[position], value[0]) for position, value in spec.items()]
        alternatives.append(And(tuple(parts)) if parts else Constant(True))
    return Or(tuple(alternatives)) if alternatives else Constant(False)


def _equals(field: DataField, value: pa.Scalar) -> Predicate:
    if not value.is_valid:
        return IsNull(field.name)
    if isinstance(field.type, AtomicType) and field.type.name is TypeName.CHAR:
        text, lengths = value.as_py(), range(field.type.length + 1)  # writers may pad CHAR values
        return IsIn(field.name, tuple(dict.fromkeys(text.ljust(length) for length in lengths)))
    return Compare(field.name, Op.EQUAL, value)
