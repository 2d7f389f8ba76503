# SPDX-License-Identifier: Apache-2.0
"""Parses partition fields and sort keys, such as ``day(ts)``, ``bucket(16, id)`` and ``id
desc``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.avro_schemas import avro_name
from lakeformat.iceberg.partition_spec import FIRST_FIELD_ID, PartitionField, PartitionSpec
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.transforms import Transform, TransformKind, parse_transform
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.types.closest import closest

__all__ = ["new_sort_order", "new_spec", "partition_text"]

_TERM = re.compile(r"(\w+)\(\s*(?:(\d+)\s*,\s*)?([^(),]+?)\s*\)")
_KEY = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.IGNORECASE)
_DATES = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_EXACT = (
    *("int", "long", "decimal", "date", "time", "timestamp", "timestamptz", "timestamp_ns"),
    *("timestamptz_ns", "string", "uuid", "fixed", "binary"),
)
_SOURCES = {
    TransformKind.BUCKET: _EXACT,
    TransformKind.TRUNCATE: ("int", "long", "decimal", "string", "binary"),
    TransformKind.YEAR: _DATES,
    TransformKind.MONTH: _DATES,
    TransformKind.DAY: _DATES,
    TransformKind.HOUR: _DATES[1:],
}
_WITHOUT_VALUES = ("variant", "geometry", "geography", "unknown")
_SUFFIX = {TransformKind.TRUNCATE: "trunc"}
_EXAMPLES = "write a column, or a transform such as day(ts), bucket(16, id) or truncate(4, name)"


@dataclass(frozen=True, slots=True)
class _Term:
    source: Field
    name: str
    """The name of the column; dots separate nested fields."""
    transform: Transform

    @property
    def partition_name(self) -> str:
        """The name that Java gives to the partition field."""
        kind = self.transform.kind
        if kind is TransformKind.IDENTITY:
            return self.name
        return f"{self.name}_{_SUFFIX.get(kind, kind.value)}"


def new_spec(schema: Schema, terms: Sequence[str]) -> PartitionSpec:
    """Return partition spec 0 of a new table.

    Raise ``InvalidRequestError`` for an unknown column or transform, and for a type that the
    transform does not take. Raise it also if two partition fields would have the same name in the
    metadata or in manifests. The name that a transform gives to a partition field, such as
    ``id_bucket``, must not be the name of a column either.
    """
    fields: list[PartitionField] = []
    for text in terms:
        term = _parse(schema, text)
        name = term.partition_name
        if any(each.name == name for each in fields):
            raise InvalidRequestError(f"two partition fields have the name {name!r}: remove one")
        for each in fields:
            if avro_name(each.name) == avro_name(name):
                raise InvalidRequestError(
                    f"the partition fields {each.name!r} and {name!r} would both have the name "
                    f"{avro_name(name)!r} in manifests: rename a column"
                )
        if term.transform.kind is not TransformKind.IDENTITY and schema.named(name) is not None:
            raise InvalidRequestError(
                f"the partition field of {text!r} would have the name {name!r}, which is also a "
                "column: rename the column"
            )
        number = FIRST_FIELD_ID + len(fields)
        fields.append(PartitionField((term.source.id,), number, name, term.transform.text))
    return PartitionSpec(0, tuple(fields))


def partition_text(text: str) -> str:
    """Return a partition field in the form of ``IcebergTable.partition_by``.

    For example, ``identity(id)`` becomes ``id``. Raise ``InvalidRequestError`` for an unknown
    transform.
    """
    name, transform = _split(text)
    is_plain = transform.kind is TransformKind.IDENTITY
    return name if is_plain else f"{transform.text}({name})"


def new_sort_order(schema: Schema, keys: Sequence[str]) -> SortOrder:
    """Return the sort order of a new table: order 1, or order 0 without keys.

    Raise ``InvalidRequestError`` for an unknown column or transform, and for a type that cannot be
    sorted.
    """
    if not keys:
        return SortOrder(0)
    return SortOrder(1, tuple(_sort_field(schema, key) for key in keys))


def _sort_field(schema: Schema, key: str) -> SortField:
    found = _KEY.fullmatch(key.strip())
    if found is None:
        raise InvalidRequestError(f"{key!r} is not a sort key: {_EXAMPLES}, then asc or desc")
    term = _parse(schema, found[1])
    direction = (found[2] or "asc").lower()
    nulls = (found[3] or ("first" if direction == "asc" else "last")).lower()
    return SortField((term.source.id,), term.transform.text, direction, f"nulls-{nulls}")


def _parse(schema: Schema, text: str) -> _Term:
    name, transform = _split(text)
    source = schema.named(name)
    if source is None:
        near = closest(name, schema.column_names)
        raise InvalidRequestError(f"{text!r} names no column of the table; {_EXAMPLES}{near}")
    kind = source.type.name if isinstance(source.type, PrimitiveType) else "nested"
    allowed = _SOURCES.get(transform.kind)
    if kind in ("nested", *_WITHOUT_VALUES) or (allowed is not None and kind not in allowed):
        raise InvalidRequestError(
            f"the partition or sort key {text!r} does not take column {name!r}, whose type is "
            f"{kind}: choose another column or transform"
        )
    return _Term(source, name, transform)


def _split(text: str) -> tuple[str, Transform]:
    stripped = text.strip()
    found = _TERM.fullmatch(stripped)
    if found is None:
        return stripped, parse_transform("identity")
    word, number, name = found[1].lower(), found[2], found[3]
    transform = parse_transform(word if number is None else f"{word}[{number}]")
    if transform.kind in (TransformKind.UNKNOWN, TransformKind.VOID):
        why = "is not a transform" if transform.kind is TransformKind.UNKNOWN else "keeps no values"
        raise InvalidRequestError(f"{text!r} {why}: {_EXAMPLES}")
    # The singular, such as "day", which every reader accepts.
    if number is None:
        transform = parse_transform(transform.kind.value)
    return name, transform
