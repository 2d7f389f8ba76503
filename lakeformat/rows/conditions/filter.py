# SPDX-License-Identifier: Apache-2.0
"""Conditions bound to the columns of one table, to filter rows and to skip files.

Comparisons follow SQL: a comparison with null is unknown, and ``AND``, ``OR`` and ``NOT`` use
three-valued logic. NaN equals itself and is larger than every number; ``-0.0`` equals ``0.0``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.conditions.like import prefix_tests, require_pattern
from lakeformat.rows.conditions.literals import has_literals, literal_of, neighbours
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
from lakeformat.rows.conditions.row_mask import row_mask
from lakeformat.rows.prune import Alternatives, ColumnTest, Conjunction, Op
from lakeformat.types.closest import closest
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    TypeName,
)
from lakeformat.types.values import Value, values_from_arrow

__all__ = ["PredicateFilter", "Where", "as_predicate", "bind_predicate"]

Where: TypeAlias = str | Predicate
"""A condition as a caller gives it: SQL text, or a predicate made with ``col``."""

_CONTRARY = {
    Op.EQUAL: Op.NOT_EQUAL,
    Op.NOT_EQUAL: Op.EQUAL,
    Op.LESS: Op.GREATER_EQUAL,
    Op.GREATER_EQUAL: Op.LESS,
    Op.GREATER: Op.LESS_EQUAL,
    Op.LESS_EQUAL: Op.GREATER,
}
_MOST_NOT_EQUAL = 20
"""The largest number of values in a NOT IN that are compared with the bounds of files; longer lists
exclude few files.
"""
_MOST_BRANCHES = 20
"""The largest number of branches of an OR that is compared with the bounds of files: each branch
costs one comparison with the bounds of all files.
"""


@dataclass(frozen=True, slots=True)
class PredicateFilter:
    """A condition on existing columns, with values of the columns' types."""

    predicate: Predicate
    """The condition; its values are Arrow scalars, and NOT occurs only before LIKE, IN and
    IS NULL.
    """
    fields: Mapping[str, DataField]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns, and of fields inside of structs, that the condition uses."""
        return self.predicate.columns

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return, for each row: True if the row meets the condition, False if not, null if that is
        unknown.
        """
        return row_mask(self.predicate, batch)

    def conjuncts(self) -> list[PredicateFilter]:
        """Return the conditions that AND joins, split as far as possible: a row must meet every
        one.
        """
        return [replace(self, predicate=part) for part in _conjuncts(self.predicate)]

    def conditions(self) -> Conjunction:
        """Return conditions for skipping files by bounds: every row that meets ``predicate`` meets
        them all.
        """
        return [c for part in _conjuncts(self.predicate) for c in self._conditions(part)]

    def to_text(self) -> str:
        """Return the condition as SQL text."""
        return self.predicate.to_text()

    def _conditions(self, part: Predicate) -> Conjunction:
        match part:
            case Compare(column, op, value):
                return [ColumnTest(column, op, self._value(column, value))]
            case IsIn(column, values):
                return [ColumnTest(column, Op.IN, tuple(self._values(column, values)))]
            case Not(IsIn(column, values)):
                if any(not value.is_valid for value in values):
                    return [
                        ColumnTest(column, Op.IN, ())
                    ]  # never true, because each value might equal the null
                if len(values) > _MOST_NOT_EQUAL:
                    return [ColumnTest(column, Op.IS_NOT_NULL)]
                found = self._values(column, values)
                return [ColumnTest(column, Op.NOT_EQUAL, value) for value in found]
            case IsNull(column):
                return [ColumnTest(column, Op.IS_NULL)]
            case Not(IsNull(column)):
                return [ColumnTest(column, Op.IS_NOT_NULL)]
            case Like(column, pattern, escape):
                return prefix_tests(column, pattern, escape)
            case Not(Like(column)):
                return [ColumnTest(column, Op.IS_NOT_NULL)]
            case Or(parts):
                return [*self._of_any(parts), *self._alternatives(parts)]
            case Constant(False | None):
                return [ColumnTest(next(iter(self.fields)), Op.IN, ())]  # no value matches
        return []

    def _of_any(self, parts: Sequence[Predicate]) -> list[ColumnTest]:
        """Return IN tests; every row that meets an OR of ``parts`` passes all of them.

        A column has a test if every part compares it with ``=`` or IN. The test lists the values
        of all parts.
        """
        fixed = [self._fixed(part) for part in parts]
        columns = [name for name in fixed[0] if all(name in each for each in fixed)]
        return [
            ColumnTest(name, Op.IN, tuple(value for each in fixed for value in each[name]))
            for name in columns
        ]

    def _alternatives(self, parts: Sequence[Predicate]) -> list[Alternatives]:
        """Return a list of one ``Alternatives``, which has the tests of each part of an OR.

        Return an empty list if there are too many parts, if a part has no tests, or if the result
        of ``_of_any`` has the same effect.
        """
        if len(parts) > _MOST_BRANCHES:
            return []
        branches = [
            tuple(
                test
                for each in _conjuncts(part)
                for test in self._conditions(each)
                if isinstance(test, ColumnTest)
            )
            for part in parts
        ]
        is_list = all(len(each) == 1 and each[0].op in (Op.EQUAL, Op.IN) for each in branches)
        if not all(branches) or (is_list and len({each[0].column for each in branches}) == 1):
            return []
        return [Alternatives(tuple(branches))]

    def _fixed(self, part: Predicate) -> dict[str, list[Value]]:
        """Return, by column, the values to which a part of an OR limits the column with ``=`` or
        IN.
        """
        found: dict[str, list[Value]] = {}
        for each in _conjuncts(part):
            match each:
                case Compare(column, Op.EQUAL, value):
                    values = [self._value(column, value)]
                case IsIn(column, literals):
                    values = self._values(column, literals)
                case _:
                    continue
            found.setdefault(column, [value for value in values if value is not None])
        return found

    def _values(self, column: str, scalars: Sequence[pa.Scalar]) -> list[Value]:
        there = [scalar for scalar in scalars if scalar.is_valid]
        kind = self.fields[column].type
        return list(values_from_arrow(pa.array(there, scalars[0].type), kind))

    def _value(self, column: str, scalar: pa.Scalar) -> Value:
        [value] = values_from_arrow(pa.array([scalar], scalar.type), self.fields[column].type)
        return value


def as_predicate(where: Where) -> Predicate:
    """Return a condition as a tree; SQL text is parsed.

    Raise InvalidRequestError for SQL that is not a condition, and for any other object.
    """
    if isinstance(where, str):
        # The parser takes a while to load; conditions made with col do not need it.
        from lakeformat.rows.conditions.sql import parse_predicate

        return parse_predicate(where)
    if not isinstance(where, Predicate):
        raise InvalidRequestError(
            'a condition must be a SQL text, such as "amount > 10", or made with lake.col, such as '
            f'col("amount") > 10, got {where!r}'
        )
    return where


def bind_predicate(where: Where, fields: Sequence[DataField]) -> PredicateFilter:
    """Return the condition ``where`` with values of the types of the columns ``fields``.

    Raise InvalidRequestError for an unknown column, for a value that cannot be compared with its
    column, and for a condition that is invalid or nested too deep.
    """
    where = as_predicate(where)
    by_name = {field.name: field for field in fields}
    try:
        return PredicateFilter(_bound(where, by_name, is_negated=False), by_name)
    except RecursionError:
        raise InvalidRequestError(
            "the condition is nested too deep: write col(…).isin([…]) in place of many |, or "
            "divide it into several calls"
        ) from None


def _bound(part: Predicate, fields: Mapping[str, DataField], *, is_negated: bool) -> Predicate:
    """Return the condition with values of the columns' types, and NOT moved into the single tests.

    With ``is_negated``, return the negation of ``part``.
    """
    match part:
        case Not(inner):
            return _bound(inner, fields, is_negated=not is_negated)
        case And(parts) | Or(parts):
            joined = And if isinstance(part, And) is not is_negated else Or
            bound = tuple(_bound(p, fields, is_negated=is_negated) for p in parts)
            return joined(bound) if len(bound) != 1 else bound[0]
        case Constant(value):
            return Constant(value if value is None else value is not is_negated)
        case Compare(column, op, value):
            op = _CONTRARY[op] if is_negated else op
            return _bound_comparison(column, op, value, _field(column, fields))
        case IsIn(column, values):
            return _bound_list(column, values, _field(column, fields), is_negated=is_negated)
        case Like(column, pattern, escape):
            _require_text(_field(column, fields))
            require_pattern(pattern, escape)  # now, not only at the first row
        case IsNull(column):
            _field(column, fields)
    return Not(part) if is_negated else part


def _bound_comparison(column: str, op: Op, value: Any, field: DataField) -> Predicate:
    """Return a comparison with a value of the column's type.

    If ``value`` is a number that the column cannot have, return an equivalent condition, for
    example a comparison with the nearest value.
    """
    try:
        return Compare(column, op, literal_of(value, field))
    except InvalidRequestError:
        beside = neighbours(value, field)
        if beside is None:
            raise
    below, above = beside
    match op:
        case Op.EQUAL:
            return _of_every_value(column, field, is_met=False)
        case Op.LESS | Op.LESS_EQUAL if above is not None:
            if below is None:
                return _of_every_value(column, field, is_met=False)
            return Compare(column, Op.LESS_EQUAL, below)
        case Op.GREATER | Op.GREATER_EQUAL if below is not None:
            if above is None:
                return _of_every_value(column, field, is_met=False)
            return Compare(column, Op.GREATER_EQUAL, above)
    return _of_every_value(column, field, is_met=True)


def _of_every_value(column: str, field: DataField, *, is_met: bool) -> Compare:
    """Return a comparison that every number in the column meets; it is unknown for null.

    With ``is_met=False``, return a comparison that no number meets.
    """
    beside = neighbours(Decimal("-Infinity"), field)
    assert beside is not None, "a column of integers or decimals"
    return Compare(column, Op.GREATER_EQUAL if is_met else Op.LESS, beside[1])


def _bound_list(
    column: str, values: Sequence[Any], field: DataField, *, is_negated: bool
) -> Predicate:
    if not values:
        return Constant(is_negated)
    literals = []
    for value in values:
        try:
            literals.append(literal_of(value, field))
        except InvalidRequestError:
            if neighbours(value, field) is None:
                raise
    if not literals:  # values that the column can never have
        return _of_every_value(column, field, is_met=is_negated)
    found = IsIn(column, tuple(literals))
    return Not(found) if is_negated else found


def _field(column: str, fields: Mapping[str, DataField]) -> DataField:
    if column not in fields:
        if (around := _list_around(column, fields)) is not None:
            raise InvalidRequestError(
                f"the condition names {column!r}, but {around.name!r} is "
                f"{type_to_sql(around.type)}, and conditions cannot use what is inside of lists "
                "and maps: read the rows without this comparison, then filter them"
            )
        whole = column.partition(".")[0]
        if whole in fields and not any(name.startswith(f"{whole}.") for name in fields):
            raise InvalidRequestError(
                f"the condition names {column!r}, but {whole!r} is "
                f"{type_to_sql(fields[whole].type)}, and conditions cannot use a part of such a "
                "column: name the whole column, or read the rows without this comparison, then "
                "filter them"
            )
        raise InvalidRequestError(
            f"the condition names {column!r}, which is not a column; the columns are "
            f"{', '.join(fields)}"
            f"{closest(column, fields)}"
        )
    return fields[column]


def _list_around(column: str, fields: Mapping[str, DataField]) -> DataField | None:
    """Return the column or field of list or map type that contains the field ``column``.

    ``column`` is a dotted name. Return None if the field is not inside of a list or map.
    """
    parts = column.split(".")
    for count in range(1, len(parts)):
        found = fields.get(".".join(parts[:count]))
        if found is not None and isinstance(found.type, ArrayType | MapType | MultisetType):
            return found
    return None


def _require_text(field: DataField) -> None:
    data_type = field.type
    if not isinstance(data_type, AtomicType) or data_type.name not in (
        TypeName.CHAR,
        TypeName.VARCHAR,
    ):
        usable = "=, <, > or IN" if has_literals(data_type) else "IS NULL or IS NOT NULL only"
        raise InvalidRequestError(
            f"LIKE needs a column of CHAR, VARCHAR or STRING, but {field.name!r} is "
            f"{type_to_sql(data_type)}: use {usable}"
        )


def _conjuncts(part: Predicate) -> list[Predicate]:
    if not isinstance(part, And):
        return [part]
    return [found for each in part.parts for found in _conjuncts(each)]
