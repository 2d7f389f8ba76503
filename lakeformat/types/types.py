# SPDX-License-Identifier: Apache-2.0
"""Paimon's logical types, independent of the file format.

``type_text.py`` reads and writes types as text and JSON; ``arrow_types.py`` maps them to Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from lakeformat.errors import InvalidRequestError
from lakeformat.types.count_text import counted

__all__ = [
    "BYTES",
    "MAX_LENGTH",
    "STRING",
    "ArrayType",
    "AtomicType",
    "DataField",
    "DataType",
    "MapType",
    "MultisetType",
    "RowType",
    "TypeName",
    "VectorType",
    "atomic",
    "with_nullability",
]

MAX_LENGTH = 2_147_483_647
MAX_DECIMAL_PRECISION = 38
MAX_FRACTION_DIGITS = 9


class TypeName(StrEnum):
    """The atomic types, with the names that Paimon gives them."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    VARIANT = "VARIANT"
    BLOB = "BLOB"
    GEOMETRY = "GEOMETRY"
    GEOGRAPHY = "GEOGRAPHY"
    TIME_MICROS = "TIME(6)"
    """The type of Iceberg's ``time`` columns in conditions, in microseconds.

    Paimon stores TIME in milliseconds.
    """


@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without parts; its parameters are always complete, defaults included."""

    name: TypeName
    parameters: tuple[int | str, ...] = ()
    nullable: bool = True

    @property
    def length(self) -> int:
        """The length of CHAR, VARCHAR, BINARY and VARBINARY."""
        return self._number(0)

    @property
    def precision(self) -> int:
        """The precision of DECIMAL, TIME and the timestamps."""
        return self._number(0)

    @property
    def scale(self) -> int:
        """The scale of DECIMAL."""
        return self._number(1)

    def _number(self, position: int) -> int:
        value = self.parameters[position]
        assert isinstance(value, int), f"parameter {position} of {self.name} is not a number"
        return value


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of elements of one type."""

    element: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class VectorType:
    """A list of elements; all lists of the type have the same length."""

    element: DataType
    length: int
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class MultisetType:
    """A multiset: each element with its number of occurrences."""

    element: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from keys to values; keys in files are never null."""

    key: DataType
    value: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class DataField:
    """A column, or a field of a ROW; the id is its identity, the name may change."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None

    def without_comment(self) -> DataField:
        """Return the column without its own comment; comments of fields inside of it remain."""
        return replace(self, description=None)


@dataclass(frozen=True, slots=True)
class RowType:
    """A row of named fields."""

    fields: tuple[DataField, ...]
    nullable: bool = True


DataType = AtomicType | ArrayType | VectorType | MultisetType | MapType | RowType

_LENGTH_TYPES = {TypeName.CHAR, TypeName.VARCHAR, TypeName.BINARY, TypeName.VARBINARY}
_FRACTION_TYPES = {TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ}
_DEFAULT_PARAMETERS: dict[TypeName, tuple[int | str, ...]] = {
    **dict.fromkeys(_LENGTH_TYPES, (1,)),
    TypeName.DECIMAL: (10, 0),
    TypeName.TIME: (0,),
    TypeName.TIMESTAMP: (6,),
    TypeName.TIMESTAMP_LTZ: (6,),
    TypeName.GEOMETRY: ("OGC:CRS84",),
    TypeName.GEOGRAPHY: ("OGC:CRS84", "spherical"),
}


def atomic(name: TypeName, *parameters: int | str, nullable: bool = True) -> AtomicType:
    """Return an atomic type; missing parameters get their defaults.

    Raise ``InvalidRequestError`` for too many parameters, and for a parameter that the type does
    not allow.
    """
    defaults = _DEFAULT_PARAMETERS.get(name, ())
    if len(parameters) > len(defaults):
        takes = f"at most {counted(len(defaults), 'parameter')}" if defaults else "no parameters"
        given = ", ".join(map(str, parameters))
        raise InvalidRequestError(f"type {name} takes {takes}, got ({given})")
    complete = (*parameters, *defaults[len(parameters) :])
    _check_parameters(name, complete)
    return AtomicType(name, complete, nullable)


def _check_parameters(name: TypeName, parameters: tuple[int | str, ...]) -> None:
    if name in _LENGTH_TYPES:
        _check_range(name, "length", parameters[0], 1, MAX_LENGTH)
    elif name in _FRACTION_TYPES:
        _check_range(name, "precision", parameters[0], 0, MAX_FRACTION_DIGITS)
    elif name is TypeName.DECIMAL:
        _check_range(name, "precision", parameters[0], 1, MAX_DECIMAL_PRECISION)
        _check_range(name, "scale", parameters[1], 0, int(parameters[0]))


def _check_range(name: TypeName, what: str, value: int | str, low: int, high: int) -> None:
    if not isinstance(value, int) or not low <= value <= high:
        raise InvalidRequestError(f"{what} of {name} must be from {low} to {high}, got {value}")


STRING = atomic(TypeName.VARCHAR, MAX_LENGTH)
BYTES = atomic(TypeName.VARBINARY, MAX_LENGTH)


def with_nullability(data_type: DataType, *, nullable: bool) -> DataType:
    """Return ``data_type`` with ``nullable``; its children do not change."""
    return replace(data_type, nullable=nullable)
