# SPDX-License-Identifier: Apache-2.0
"""Converts conditions on rows to Spark columns, if Spark then selects the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sql

from lakeformat.rows.conditions.predicate import (
    And,
    Compare,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakeformat.rows.prune import Op
from lakeformat.types.types import AtomicType, DataField, TypeName

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["column_named", "spark_condition"]

_PLAIN = {
    TypeName.CHAR,
    TypeName.VARCHAR,
    TypeName.BOOLEAN,
    TypeName.TINYINT,
    TypeName.SMALLINT,
    TypeName.INT,
    TypeName.BIGINT,
    TypeName.FLOAT,
    TypeName.DOUBLE,
    TypeName.DECIMAL,
}
_FLOATING = (TypeName.FLOAT, TypeName.DOUBLE)
_MICROSECONDS = 6
_CHANGE_OF_CALENDAR = date(1582, 10, 4), date(1582, 10, 15)
"""The days between these two are missing in the calendar of ``java.sql.Date``, in which Spark may
compare a literal with the bounds of a file.
"""
_FIRST_EXACT_MOMENT = date(1900, 1, 1)
"""From this day on, Spark does not shift a timestamp with a time zone before it compares the
timestamp with the bounds of a file. Spark may shift an earlier timestamp because of the calendar
before 1582, or because of the local mean time that cities used before time zones.
"""


def spark_condition(condition: Predicate, fields: Mapping[str, DataField]) -> Column | None:
    """Return a condition as a Spark column; None if Spark has no condition with the same meaning.
    ``fields`` are the table's columns by name.
    """
    match condition:
        case And(parts) | Or(parts):
            found = [spark_condition(part, fields) for part in parts]
            known = [each for each in found if each is not None]
            if len(known) < len(found) or not known:
                return None
            return reduce(and_ if isinstance(condition, And) else or_, known)
        case Not(part):
            inner = spark_condition(part, fields)
            return None if inner is None else ~inner
        case Constant(value):
            return sql.lit(value).cast("boolean")
        case IsNull(name):
            return column_named(name).isNull()
        case Compare(name, op, value):
            literal = _literal(fields[name], value)
            return None if literal is None else _compared(_asked_of_rows(fields[name]), op, literal)
        case IsIn(name, values):
            literals = [_literal(fields[name], value) for value in values]
            known = [each for each in literals if each is not None]
            return _asked_of_rows(fields[name]).isin(known) if len(known) == len(literals) else None
        case Like(name, pattern):
            start = pattern.removesuffix("%")
            is_prefix = pattern.endswith("%") and not any(c in start for c in "%_\\")
            is_prefix = is_prefix and condition.escape not in start
            return column_named(name).startswith(start) if is_prefix else None
    return None


def column_named(name: str) -> Column:
    """Return the Spark column with exactly this name, which may contain any character."""
    return sql.col("`" + name.replace("`", "``") + "`")


def _asked_of_rows(field: DataField) -> Column:
    """Return a column in a form for which Spark checks conditions on each row.

    Spark skips row groups by minimum and maximum values. These ignore NaN, although NaN is greater
    than any number. So a FLOAT or DOUBLE is multiplied by one: Spark knows no minimum and maximum
    of a product.
    """
    column = column_named(field.name)
    is_floating = isinstance(field.type, AtomicType) and field.type.name in _FLOATING
    return column * 1.0 if is_floating else column


def _compared(column: Column, op: Op, value: Column) -> Column:
    match op:
        case Op.EQUAL:
            return column == value
        case Op.NOT_EQUAL:
            return column != value
        case Op.LESS:
            return column < value
        case Op.LESS_EQUAL:
            return column <= value
        case Op.GREATER:
            return column > value
        case Op.GREATER_EQUAL:
            return column >= value
    raise AssertionError(f"{op} is not a comparison")


def _literal(field: DataField, value: pa.Scalar) -> Column | None:
    if not value.is_valid or not isinstance(field.type, AtomicType):
        return None
    if field.type.name in _PLAIN:
        return sql.lit(value.as_py())
    if field.type.name is TypeName.DATE:
        day = value.as_py()
        # As SQL text, because Spark does not convert a date before the year 1000.
        return None if _is_at_the_change(day) else sql.expr(f"DATE '{day.isoformat()}'")
    if field.type.name not in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return None
    return _moment(value) if field.type.precision <= _MICROSECONDS else None


def _moment(value: pa.Scalar) -> Column | None:
    """Return the literal of a timestamp; None if its unit is nanoseconds, or if Spark may shift it.

    The literal is SQL text, because Spark would convert a datetime to the driver's time zone.
    """
    if value.type.unit == "ns":
        return None
    moment: Any = value.as_py()
    assert isinstance(moment, datetime)
    if value.type.tz and moment.date() < _FIRST_EXACT_MOMENT:
        return None
    text = moment.replace(tzinfo=None).isoformat(" ", "microseconds")
    return sql.expr(f"TIMESTAMP '{text}Z'" if value.type.tz else f"TIMESTAMP_NTZ '{text}'")


def _is_at_the_change(day: date) -> bool:
    first, last = _CHANGE_OF_CALENDAR
    return first <= day <= last
