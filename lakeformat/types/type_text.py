# SPDX-License-Identifier: Apache-2.0
"""Reads and writes logical types as text and JSON, the way schema files store them.

Atomic types are strings (``DECIMAL(10, 2) NOT NULL``), constructed types are JSON objects.
``parse_type`` also takes the SQL form of constructed types (``ARRAY<INT>``), but no JSON.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.closest import closest
from lakeformat.types.types import (
    BYTES,
    MAX_LENGTH,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    VectorType,
    atomic,
    with_nullability,
)

__all__ = [
    "field_from_json",
    "field_to_json",
    "parse_type",
    "type_from_json",
    "type_to_json",
    "type_to_sql",
]


class _UnknownTypeError(InvalidRequestError):
    """The error for a type with a name that this version does not know."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name

    def __reduce__(self) -> tuple[type[_UnknownTypeError], tuple[str, str]]:
        return type(self), (str(self), self.name)


_TOKEN = re.compile(r"\s*(?:(`[^`]+`|[A-Za-z_][\w:]*|-?\d+|[(),<>]))")
_MARKS = ("(", ")", ",", "<", ">")
_ALIASES = {
    "INTEGER": TypeName.INT,
    "NUMERIC": TypeName.DECIMAL,
    "DEC": TypeName.DECIMAL,
}
_LENGTH_DIGITS = 10
_CONSTRUCTED = {"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR"}


def parse_type(text: str) -> DataType:
    """Parse a type in SQL form, such as ``ARRAY<INT>`` or ``DECIMAL(10, 2) NOT NULL``, in any
    letter case.

    Raise ``InvalidRequestError`` for any other text.
    """
    if not isinstance(text, str):
        raise InvalidRequestError(f"a type must be text such as 'BIGINT NOT NULL', got {text!r}")
    try:
        return _parsed(text)
    except _UnknownTypeError as unknown:
        raise InvalidRequestError(str(unknown)) from None


def _parsed(text: str) -> DataType:
    parser = _TypeParser(text)
    try:
        parsed = parser.type()
    except RecursionError:
        raise InvalidRequestError(
            f"not a type: {text[:80]!r}…: it is nested too deep; store such values as STRING"
        ) from None
    parser.expect_end()
    return parsed


def type_to_json(data_type: DataType) -> Any:
    """Return the JSON value of a type in a schema file."""
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case AtomicType():
            return _atomic_text(data_type) + suffix
        case ArrayType(element=element):
            return {"type": "ARRAY" + suffix, "element": type_to_json(element)}
        case VectorType(element=element, length=length):
            return {"type": "VECTOR" + suffix, "element": type_to_json(element), "length": length}
        case MultisetType(element=element):
            return {"type": "MULTISET" + suffix, "element": type_to_json(element)}
        case MapType(key=key, value=value):
            parts = {"key": type_to_json(key), "value": type_to_json(value)}
            return {"type": "MAP" + suffix, **parts}
        case RowType(fields=fields):
            return {"type": "ROW" + suffix, "fields": [field_to_json(f) for f in fields]}


def type_to_sql(data_type: DataType) -> str:
    """Return a type in SQL form, for messages: ``ARRAY<ROW<id BIGINT, note STRING>>``.

    MULTISET and VECTOR are printed without the type of their elements.
    """
    end = "" if data_type.nullable else " NOT NULL"
    if isinstance(data_type, RowType):
        parts = ", ".join(f"{each.name} {type_to_sql(each.type)}" for each in data_type.fields)
        return f"ROW<{parts}>{end}"
    if isinstance(data_type, MapType):
        return f"MAP<{type_to_sql(data_type.key)}, {type_to_sql(data_type.value)}>{end}"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{type_to_sql(data_type.element)}>{end}"
    found = type_to_json(data_type)
    return found if isinstance(found, str) else f"{found['type']}"


def type_from_json(value: Any) -> DataType:
    """Return the type of a JSON value in a schema file; unknown members are ignored.

    Raise ``InvalidRequestError`` or ``UnsupportedError`` for a value that is not a known type.
    """
    if isinstance(value, str):
        return _parsed(value)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidRequestError(
            f"a type must be a string or a JSON object with the member 'type', got {value!r}"
        )
    words = value["type"].upper().split()
    if not words or words[0] not in _CONSTRUCTED:
        known = ", ".join(sorted(_CONSTRUCTED))
        raise _UnknownTypeError(
            f"unknown type {value['type']!r}: a type in JSON is one of {known}", value["type"]
        )
    try:
        constructed = _constructed_from_json(words[0], value)
    except KeyError as missing:
        raise InvalidRequestError(f"a type {words[0]} lacks its member {missing}") from None
    return with_nullability(constructed, nullable="NOT" not in words)


def _constructed_from_json(kind: str, value: dict[str, Any]) -> DataType:
    if kind == "ROW":
        return RowType(tuple(_fields_from_json(value["fields"])))
    if kind == "MAP":
        return MapType(type_from_json(value["key"]), type_from_json(value["value"]))
    element = type_from_json(value["element"])
    if kind == "VECTOR":
        return VectorType(element, _length(value["length"]))
    return ArrayType(element) if kind == "ARRAY" else MultisetType(element)


def _length(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(
            f"the length of type VECTOR must be a whole number, got {value!r}"
        )
    return value


def field_to_json(field: DataField) -> dict[str, Any]:
    """Return the JSON object of a column.

    A missing description or default is left out, because Java reads a null member as the text
    ``null``.
    """
    value: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "type": type_to_json(field.type),
    }
    if field.description is not None:
        value["description"] = field.description
    if field.default_value is not None:
        value["defaultValue"] = field.default_value
    return value


def field_from_json(value: Any, fallback_id: int | None = None) -> DataField:
    """Return the column or ROW field of a JSON object; ``fallback_id`` is the id for an object that
    has no id.

    Raise ``UnsupportedError`` for a type with an unknown name, and ``InvalidRequestError`` for any
    other value that is not a field.
    """
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InvalidRequestError(
            f"a field must be a JSON object whose member 'name' is a string, got {value!r}"
        )
    field_id = value.get("id", fallback_id)
    if not isinstance(field_id, int):
        raise InvalidRequestError(
            f"field {value['name']!r} needs a whole number as 'id', got {field_id!r}"
        )
    if "type" not in value:
        raise InvalidRequestError(f"field {value['name']!r} has no type")
    try:
        data_type = type_from_json(value["type"])
    except _UnknownTypeError as unknown:
        raise UnsupportedError(
            f"column or field {value['name']!r} has type {unknown.name}, which this version does "
            "not know: upgrade this library, or use the engine that created the table"
        ) from None
    return DataField(
        field_id, value["name"], data_type, value.get("description"), value.get("defaultValue")
    )


def _fields_from_json(values: Any) -> list[DataField]:
    if not isinstance(values, list):
        raise InvalidRequestError(f"fields of a ROW must be a list, got {values!r}")
    return [field_from_json(value, fallback_id=i) for i, value in enumerate(values)]


def _atomic_text(data_type: AtomicType) -> str:
    name, parameters = data_type.name, data_type.parameters
    if name is TypeName.VARCHAR and parameters == (MAX_LENGTH,):
        return "STRING"
    if name is TypeName.VARBINARY and parameters == (MAX_LENGTH,):
        return "BYTES"
    if name is TypeName.TIMESTAMP_LTZ:
        return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE"
    return f"{name}({', '.join(map(str, parameters))})" if parameters else str(name)


class _TypeParser:
    """Parses one type from tokens; ROW fields get ids in the order of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize(text)
        self._position = 0
        self._ids = count()

    def type(self) -> DataType:
        word = self._word()
        if word in _CONSTRUCTED:
            parsed = self._constructed(word)
        else:
            parsed = self._atomic(word)
        return with_nullability(parsed, nullable=self._nullability())

    def expect_end(self) -> None:
        if self._position < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._position]!r}")

    def _constructed(self, word: str) -> DataType:
        self._expect("<")
        constructed: DataType
        if word == "ROW":
            constructed = RowType(tuple(self._row_fields()))
        elif word == "MAP":
            key = self.type()
            self._expect(",")
            constructed = MapType(key, self.type())
        elif word == "VECTOR":
            element = self.type()
            self._expect(",")
            constructed = VectorType(element, self._length())
        else:
            element = self.type()
            constructed = ArrayType(element) if word == "ARRAY" else MultisetType(element)
        self._expect(">")
        return constructed

    def _length(self) -> int:
        token = self._next()
        if not token.isdigit() or not 1 <= len(token) <= _LENGTH_DIGITS:
            raise self._error(
                f"the length of a VECTOR must be a number of 1 to 10 digits, found {token!r}"
            )
        return int(token)

    def _row_fields(self) -> list[DataField]:
        fields = []
        while True:
            name = self._next()
            if name in _MARKS:
                raise self._error(f"expected the name of a field, found {name!r}")
            field_id = next(self._ids)
            fields.append(DataField(field_id, name.strip("`"), self.type()))
            if not self._accept(","):
                return fields

    def _atomic(self, word: str) -> AtomicType:
        if word in ("STRING", "BYTES"):
            return STRING if word == "STRING" else BYTES
        if word == "DOUBLE":
            self._accept("PRECISION")
        name = _ALIASES.get(word) or self._type_name(word)
        parameters = self._parameters()
        if name in (TypeName.TIME, TypeName.TIMESTAMP):
            name = self._time_zone(name)
        return atomic(name, *parameters)

    def _type_name(self, word: str) -> TypeName:
        try:
            return TypeName(word)
        except ValueError:
            written = {*map(str, TypeName)} - {TypeName.TIME_MICROS}
            names = sorted({*written, *_ALIASES, *_CONSTRUCTED, "STRING", "BYTES"})
            known = closest(word, names) or f"; the types are {', '.join(names)}"
            reason = f"unknown type {word!r}{known}"
            raise _UnknownTypeError(f"not a type: {self._text!r}: {reason}", self._text) from None

    def _parameters(self) -> list[int | str]:
        parameters: list[int | str] = []
        if self._accept("("):
            while True:
                token = self._next()
                parameters.append(int(token) if token.lstrip("-").isdigit() else token)
                if not self._accept(","):
                    break
            self._expect(")")
        return parameters

    def _time_zone(self, name: TypeName) -> TypeName:
        if self._accept("WITHOUT"):
            self._expect("TIME")
            self._expect("ZONE")
        elif name is TypeName.TIMESTAMP and self._accept("WITH"):
            for word in ("LOCAL", "TIME", "ZONE"):
                self._expect(word)
            return TypeName.TIMESTAMP_LTZ
        return name

    def _nullability(self) -> bool:
        if self._accept("NOT"):
            self._expect("NULL")
            return False
        self._accept("NULL")
        return True

    def _tokenize(self, text: str) -> list[str]:
        tokens, position = [], 0
        stripped = text.rstrip()
        while position < len(stripped):
            found = _TOKEN.match(stripped, position)
            if found is None:
                raise self._error(f"unexpected {stripped[position:].strip()[:1]!r}")
            tokens.append(found[1])
            position = found.end()
        return tokens

    def _next(self) -> str:
        if self._position >= len(self._tokens):
            raise self._error("the text ends too early")
        self._position += 1
        return self._tokens[self._position - 1]

    def _word(self) -> str:
        return self._next().upper()

    def _accept(self, expected: str) -> bool:
        more = self._position < len(self._tokens)
        if more and self._tokens[self._position].upper() == expected:
            self._position += 1
            return True
        return False

    def _expect(self, expected: str) -> None:
        if not self._accept(expected):
            rest = self._tokens[self._position :]
            found = repr(rest[0]) if rest else "the end"
            raise self._error(f"expected {expected!r}, found {found}")

    def _error(self, reason: str) -> InvalidRequestError:
        return InvalidRequestError(f"not a type: {self._text!r}: {reason}")
