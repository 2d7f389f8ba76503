# SPDX-License-Identifier: Apache-2.0
"""A table's schema: columns, keys and options, and its JSON form on storage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions
from lakeformat.types.amounts import Setting, setting_text
from lakeformat.types.arrow_types import to_arrow_schema, type_of_column
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import MAX_DEPTH, check_fields, require_pair, require_text
from lakeformat.types.type_text import field_from_json, field_to_json, parse_type
from lakeformat.types.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    with_nullability,
)

if TYPE_CHECKING:
    from lakeformat.paimon.options.profile import Profile

__all__ = ["ColumnList", "TableSchema", "new_schema"]

CURRENT_VERSION = 3
ColumnList: TypeAlias = "pa.Schema | Sequence[tuple[str, str]]"
"""The columns that a caller gives: an Arrow schema, or (name, type) pairs."""

_RESERVED_NAMES = {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"}
_RESERVED_PREFIX = "_KEY_"


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table's schema; a schema file never changes."""

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    time_millis: int = 0
    version: int = CURRENT_VERSION
    table_options: TableOptions = field(init=False, repr=False, compare=False)
    """The options as typed values, with the defaults that applied when this schema was written."""

    def __post_init__(self) -> None:
        options = dict(self.options)
        if self.version <= 1:
            options.setdefault("bucket", "1")
        if self.version <= 2:
            options.setdefault("file.format", "orc")
        object.__setattr__(self, "table_options", TableOptions(options))

    @property
    def key_fields(self) -> tuple[DataField, ...]:
        """The primary key's fields without partition columns, in the order of the primary key.

        They identify a row within its partition. Rows are sorted by them, and keys are stored in
        this order.
        """
        by_name = {column.name: column for column in self.fields}
        return tuple(by_name[key] for key in self.primary_keys if key not in self.partition_keys)

    @property
    def column_names(self) -> list[str]:
        return [f.name for f in self.fields]

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the table's rows."""
        return to_arrow_schema(self.fields)

    def to_json(self) -> bytes:
        """Return the content of the schema file as UTF-8."""
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
        """Return the schema with the members of a schema file; unknown members are ignored.

        A missing or damaged member raises a Python error, such as KeyError or ValueError.
        """
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
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    options: Mapping[str, Setting] | None = None,
    profile: Profile | None = None,
    comment: str | None = None,
    time_millis: int,
) -> TableSchema:
    """Return the first schema of a table, with id 0 and with ids for all columns and nested fields.

    Columns of the primary key become NOT NULL. The keys may also be given as the options
    ``primary-key`` and ``partition``, and the profile as the option ``profile``. The schema does
    not keep these three options. ``time_millis`` is the time of creation, in milliseconds since
    1970. Raise InvalidRequestError for invalid columns, keys or options, and UnsupportedError for a
    type that no data file can hold.
    """
    from lakeformat.paimon.options.profile import with_profile  # only a new table needs it

    if comment is not None:
        require_text("comment", comment)
    try:
        named = _named_types(columns)
    except RecursionError:
        raise InvalidRequestError(
            f"the type of a column nests more than {MAX_DEPTH} types: split the column, or "
            "store it as STRING"
        ) from None
    names = [name for name, _ in named]
    _check_names(names)
    check_fields(DataField(0, name, data_type) for name, data_type in named)
    settings = {}
    for key, value in (options or {}).items():
        require_text("an option's key", key)
        settings[key] = setting_text(f"the value of option {key!r}", value)
    primary_keys = _keys("primary_key", "primary-key", primary_key, settings, names)
    partition_keys = _keys("partition_by", "partition", partition_by, settings, names)
    settings = with_profile(
        settings, profile, primary_key=primary_keys, partition_by=partition_keys
    )
    fields, highest = _number_fields(named)
    schema = TableSchema(
        id=0,
        fields=tuple(_not_null(f) if f.name in primary_keys else f for f in fields),
        highest_field_id=highest,
        partition_keys=partition_keys,
        primary_keys=primary_keys,
        options=settings,
        comment=comment,
        time_millis=time_millis,
    )
    schema.table_options.validate()
    schema.arrow_schema()  # Refuse a type that no data file can hold, before anything is written.
    return schema


def _keys(
    argument: str, option: str, given: Sequence[str], settings: dict[str, str], columns: list[str]
) -> tuple[str, ...]:
    """Return the columns of a key, from the argument or from the option; ``()`` if neither is set.

    The option is removed from ``settings``. Raise InvalidRequestError if both are set, or if a name
    is unknown or repeated.
    """
    keys = _column_list(argument, given)
    if option in settings:
        if keys:
            raise InvalidRequestError(f"give {argument} or the option {option!r}, not both")
        listed = settings.pop(option).split(",")
        keys = tuple(name.strip() for name in listed if name.strip())
    for name in keys:
        if name not in columns:
            raise InvalidRequestError(
                f"{argument} names {name!r}, which is not a column; the columns are "
                f"{', '.join(columns)}"
                f"{closest(name, columns)}"
            )
        if keys.count(name) > 1:
            raise InvalidRequestError(f"{argument} names {name!r} twice; name it once")
    return keys


def _column_list(argument: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidRequestError(f"{argument} must be a list of columns, got {given!r}")
    if not all(isinstance(name, str) for name in given):
        raise InvalidRequestError(f"{argument} must be a list of names, got {given!r}")
    return tuple(given)


def _not_null(column: DataField) -> DataField:
    return replace(column, type=with_nullability(column.type, nullable=False))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _named_types(columns: ColumnList) -> list[tuple[str, DataType]]:
    if isinstance(columns, pa.Schema):
        return [(f.name, type_of_column(f.name, f.type, nullable=f.nullable)) for f in columns]
    try:
        return [(name, parse_type(text)) for name, text in map(require_pair, columns)]
    except (TypeError, ValueError):
        raise InvalidRequestError(
            "a schema must be a pyarrow.Schema or a list of (name, type) pairs such as "
            f"[('id', 'BIGINT NOT NULL')], got {columns!r}"
        ) from None


def _check_names(names: list[str]) -> None:
    if not names:
        raise InvalidRequestError("a table needs at least one column: give it one")
    for name in names:
        require_text("a column's name", name)
        if not name.strip() or name in _RESERVED_NAMES or re.match(_RESERVED_PREFIX, name):
            raise InvalidRequestError(
                f"column name {name!r} is empty or reserved by the format: choose another"
            )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(
            f"columns appear twice: {', '.join(repeated)}; rename or leave out one of each"
        )


def _number_fields(named: list[tuple[str, DataType]]) -> tuple[tuple[DataField, ...], int]:
    """Return the columns with ids from 0 on, and the highest id.

    The highest id may belong to a nested field.
    """
    numbering = _Numbering(next_id=len(named))
    fields = tuple(
        DataField(i, name, numbering.renumber(data_type))
        for i, (name, data_type) in enumerate(named)
    )
    return fields, numbering.next_id - 1


@dataclass(slots=True)
class _Numbering:
    """Assigns ids to nested fields, from ``next_id`` on; the columns have the lower ids."""

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
