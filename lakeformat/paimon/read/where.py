"""Which rows somebody asks for: a condition, and partitions by their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.partition_filter import PartitionSpec, some_partitions
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import (
    PredicateFilter,
    Where,
    as_predicate,
    bind_predicate,
)
from lakeformat.rows.conditions.predicate import And, Compare, Constant, IsNull, Or, Predicate
from lakeformat.rows.prune import Op
from lakeformat.types.types import DataField

__all__ = ["Partitions", "check_limit", "columns_named", "row_filter"]

Partitions = PartitionSpec | Sequence[PartitionSpec]
"""Values of some partition columns, or several such: rows of any of them."""


def row_filter(
    schema: TableSchema,
    where: Where | None,
    partitions: Partitions | None,
    more_fields: tuple[DataField, ...] = (),
) -> PredicateFilter | None:
    """Both as one condition, checked against the table's columns; None for all rows."""
    asked: list[Predicate] = []
    if partitions is not None:
        asked.append(_of_partitions(schema, partitions))
    fields = (*schema.fields, *more_fields)
    if where is not None:
        # Bound alone first: what is wrong with it is said in its own words.
        asked.append(as_predicate(where))
        bind_predicate(asked[-1], fields)
    return bind_predicate(And(tuple(asked)), fields) if asked else None


def columns_named(columns: object) -> list[str]:
    """The names as a list; an empty one, which nobody takes, if these are no names."""
    if not isinstance(columns, Iterable) or isinstance(columns, str | bytes):
        return []
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else []


def check_limit(limit: object) -> int | None:
    """At most so many rows; None for all of them."""
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 0:
        raise InvalidRequestError(f"limit is a number of rows, got {limit!r}")
    return int(limit)


def _of_partitions(schema: TableSchema, partitions: Partitions) -> Predicate:
    """The partitions as a condition on their columns, which are constant in each file."""
    is_list = isinstance(partitions, Sequence) and not isinstance(partitions, str)
    given: Any = partitions if is_list else [partitions]
    specs = some_partitions(schema, given).specs  # which refuses what is no partition
    names = [field.name for field in partition_fields(schema)]
    alternatives: list[Predicate] = []
    for spec in specs:
        parts: list[Predicate] = []
        for position, value in spec.items():
            name, [scalar] = names[position], value
            parts.append(Compare(name, Op.EQUAL, scalar) if scalar.is_valid else IsNull(name))
        alternatives.append(And(tuple(parts)) if parts else Constant(True))
    return Or(tuple(alternatives)) if alternatives else Constant(False)
