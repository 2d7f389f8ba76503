"""A table's schema: columns, keys and options, and its JSON form on storage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from lakeformat.arrow_types import from_arrow_type, to_arrow_schema
from lakeformat.errors import InvalidRequestError
from lakeformat.options import TableOptions, require_unaware_buckets
from lakeformat.type_text import field_from_json, field_to_json, parse_type
from lakeformat.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

__all__ = ["ColumnList", "TableSchema", "new_schema"]

CURRENT_VERSION = 3
ColumnList: TypeAlias = "pa.Schema | Sequence[tuple[str, str]]"
"""What a caller may give as columns: an Arrow schema or (name, type) pairs."""

_RESERVED_NAMES = {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"}
_RESERVED_PREFIX = "_KEY_"


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table's schema; immutable once written."""

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    time_millis: int = 0
    version: int = CURRENT_VERSION

    @property
    def table_options(self) -> TableOptions:
        """The typed options, with the defaults older schema versions had."""
        options = dict(self.options)
        if self.version <= 1:
            options.setdefault("bucket", "1")
        if self.version <= 2:
            options.setdefault("file.format", "orc")
        return TableOptions(options)

    @property
    def column_names(self) -> list[str]:
        return [f.name for f in self.fields]

    def arrow_schema(self) -> pa.Schema:
        """The table's rows in Arrow."""
        return to_arrow_schema(self.fields)

    def to_json(self) -> bytes:
        """The content of the schema file."""
        return json.dumps(self._members(), indent=2, ensure_ascii=False).encode()

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "fields": [field_to_json(f) for f in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
            "timeMillis": self.time_millis,
        }
        if self.comment is not None:  # Java reads a JSON null as the text "null"
            members["comment"] = self.comment
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> TableSchema:
        """Read the members of a schema file; unknown ones are ignored."""
        options = members.get("options") or {}
        return cls(
            id=members["id"],
            fields=tuple(field_from_json(value) for value in members["fields"]),
            highest_field_id=members["highestFieldId"],
            partition_keys=tuple(members["partitionKeys"]),
            primary_keys=tuple(members["primaryKeys"]),
            options={key: _as_text(value) for key, value in options.items()},
            comment=members.get("comment"),
            time_millis=members.get("timeMillis") or 0,
            version=members.get("version", 1),
        )


def new_schema(
    columns: ColumnList,
    *,
    options: Mapping[str, str] | None = None,
    comment: str | None = None,
    time_millis: int,
) -> TableSchema:
    """The first schema of an append table, with every column and nested field numbered."""
    named = _named_types(columns)
    _check_names([name for name, _ in named])
    fields, highest = _number_fields(named)
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=highest,
        options=dict(options or {}),
        comment=comment,
        time_millis=time_millis,
    )
    schema.table_options.validate()
    require_unaware_buckets(schema.table_options, "a table")
    # Refuses a type no data file can hold, before anything is written.
    _require_fields(schema.arrow_schema())
    return schema


def _require_fields(arrow_schema: pa.Schema) -> None:
    """No data file can hold a ROW without fields."""
    for column in arrow_schema:
        if "struct<>" in str(column.type):
            raise InvalidRequestError(f"column {column.name!r} has a ROW without fields")


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _named_types(columns: ColumnList) -> list[tuple[str, DataType]]:
    if isinstance(columns, pa.Schema):
        return [(f.name, from_arrow_type(f.type, nullable=f.nullable)) for f in columns]
    try:
        return [(name, parse_type(text)) for name, text in columns]
    except (TypeError, ValueError):
        raise InvalidRequestError(
            "a schema is a pyarrow.Schema or a list of (name, type) pairs such as "
            f"[('id', 'BIGINT NOT NULL')], got {columns!r}"
        ) from None


def _check_names(names: list[str]) -> None:
    if not names:
        raise InvalidRequestError("a table needs at least one column")
    for name in names:
        if not name or name in _RESERVED_NAMES or re.match(_RESERVED_PREFIX, name):
            raise InvalidRequestError(f"column name {name!r} is empty or reserved by the format")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(f"column names are given twice: {', '.join(repeated)}")


def _number_fields(named: list[tuple[str, DataType]]) -> tuple[tuple[DataField, ...], int]:
    """The columns with their ids, and the highest id handed out."""
    numbering = _Numbering(next_id=len(named))
    fields = tuple(
        DataField(i, name, numbering.renumber(data_type))
        for i, (name, data_type) in enumerate(named)
    )
    return fields, numbering.next_id - 1


@dataclass(slots=True)
class _Numbering:
    """Hands out ids to nested fields, after those of the columns."""

    next_id: int

    def renumber(self, data_type: DataType) -> DataType:
        match data_type:
            case ArrayType(element=part) | VectorType(element=part) | MultisetType(element=part):
                return replace(data_type, element=self.renumber(part))
            case MapType(key=key, value=value):
                return replace(data_type, key=self.renumber(key), value=self.renumber(value))
            case RowType(fields=fields):
                return replace(data_type, fields=tuple(self._field(f) for f in fields))
        return data_type

    def _field(self, old: DataField) -> DataField:
        number = self.next_id
        self.next_id += 1
        return replace(old, id=number, type=self.renumber(old.type))
