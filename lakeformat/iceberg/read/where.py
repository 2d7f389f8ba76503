# SPDX-License-Identifier: Apache-2.0
"""Combines the conditions of a scan: a filter, and values of partition columns."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.condition_fields import condition_fields, inner_condition_fields
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import PrimitiveType
from lakeformat.rows.conditions.filter import (
    PredicateFilter,
    Where,
    as_predicate,
    bind_predicate,
)
from lakeformat.rows.conditions.predicate import (
    And,
    Compare,
    Constant,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
)
from lakeformat.rows.prune import Op
from lakeformat.tables.arguments import Partitions
from lakeformat.types.closest import closest
from lakeformat.types.sentence import sentence
from lakeformat.types.types import DataField

__all__ = ["row_filter", "uuid_bytes"]

_UUID = PrimitiveType("uuid")


def row_filter(
    metadata: TableMetadata,
    schema: Schema,
    where: Where | None,
    partitions: Partitions | None,
    more: Sequence[DataField] = (),
) -> PredicateFilter | None:
    """Combine ``where`` and ``partitions`` into one checked condition.

    If both are None, return None, which selects all rows. ``where`` may name columns of ``schema``,
    fields inside of their structs by dotted names, and the columns in ``more``. Raise
    ``InvalidRequestError`` for an unknown column, or for a value that does not fit its column.
    """
    asked: list[Predicate] = []
    if partitions is not None:
        asked.append(_of_partitions(metadata, schema, partitions))
    fields = (*more, *condition_fields(schema), *inner_condition_fields(schema))
    if where is not None:
        asked.append(_with_uuids(as_predicate(where), schema))
        # Checked alone first, so that an error quotes the condition of the caller.
        bind_predicate(asked[-1], fields)
    return bind_predicate(And(tuple(asked)), fields) if asked else None


def _of_partitions(metadata: TableMetadata, schema: Schema, partitions: Partitions) -> Predicate:
    is_list = isinstance(partitions, Sequence) and not isinstance(partitions, str)
    given: Any = partitions if is_list else [partitions]
    names = _partition_columns(metadata, schema)
    alternatives = [_of_values(each, names, metadata) for each in given]
    return Or(tuple(alternatives)) if alternatives else Constant(False)


def _of_values(values: Any, names: Sequence[str], metadata: TableMetadata) -> Predicate:
    if not isinstance(values, Mapping):
        raise InvalidRequestError(
            f"partitions must be a dict such as {{'dt': '2024-01-01'}} or a list of dicts, got "
            f"{values!r}"
        )
    parts: list[Predicate] = []
    for name, value in values.items():
        if name not in names:
            known = f"only {', '.join(names)}" if names else "none without a transform"
            wrong = f"{name!r} is not a partition column of {metadata.location}, which has {known}"
            wrong += closest(str(name), names)
            raise InvalidRequestError(
                f"{sentence(wrong)} If the table is partitioned by a transform such as day(ts), a "
                "scan or delete takes a condition on the column in where=. A write takes "
                "overwrite='partitions', which replaces the partitions of its rows"
            )
        parts.append(IsNull(name) if value is None else Compare(name, Op.EQUAL, value))
    return And(tuple(parts)) if parts else Constant(True)


def _partition_columns(metadata: TableMetadata, schema: Schema) -> list[str]:
    ids = {
        field.source_id
        for spec in metadata.partition_specs
        for field in spec.fields
        if parse_transform(field.transform).kind is TransformKind.IDENTITY
    }
    return [field.name for field in schema.fields if field.id in ids]


def _with_uuids(part: Predicate, schema: Schema) -> Predicate:
    """Return the condition with UUIDs as bytes instead of text, as columns hold them."""
    match part:
        case Not(inner):
            return Not(_with_uuids(inner, schema))
        case And(parts):
            return And(tuple(_with_uuids(each, schema) for each in parts))
        case Or(parts):
            return Or(tuple(_with_uuids(each, schema) for each in parts))
        case Compare(column, op, value):
            return Compare(column, op, uuid_bytes(schema, column, value))
        case IsIn(column, values):
            return IsIn(column, tuple(uuid_bytes(schema, column, each) for each in values))
    return part


def uuid_bytes(schema: Schema, column: str, value: Any) -> Any:
    """Return the bytes of the UUID ``value``, a str or ``uuid.UUID``, if the column is a UUID.

    If the column is not a UUID, or the value has another type, return the value unchanged. Raise
    ``InvalidRequestError`` for a str that is not a UUID.
    """
    field = schema.named(column)
    if field is None or field.type != _UUID:
        return value
    if isinstance(value, uuid.UUID):
        return value.bytes
    if not isinstance(value, str):
        return value
    try:
        return uuid.UUID(value).bytes
    except ValueError:
        raise InvalidRequestError(
            f"column {column!r} is a uuid, and {value!r} is not one: write a UUID such as "
            "'f79c3e09-677c-4bbd-a479-3f349cb785e7'"
        ) from None
