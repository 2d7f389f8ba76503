# SPDX-License-Identifier: Apache-2.0
"""Converts conditions on columns to conditions on partitions.

If a row meets the condition on columns, its partition meets the new condition. So a partition that
does not meet the new condition has no matching row. A partition that meets it may still have no
matching row. A condition is always converted with the partition spec of the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.partition_type import transform_result
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.condition_fields import condition_type
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.transforms import Transform, TransformKind, parse_transform
from lakeformat.iceberg.types import PrimitiveType
from lakeformat.rows.prune import Bounds, ColumnTest, Mask, Op, may_meet
from lakeformat.types.types import AtomicType, TypeName
from lakeformat.types.units import timestamp_unit_nanos
from lakeformat.types.values import Value, values_from_arrow, values_to_arrow

__all__ = ["PartitionTest", "project"]

_NULL_TESTS = (Op.IS_NULL, Op.IS_NOT_NULL)
_UPPER = (Op.LESS, Op.LESS_EQUAL)
_LEAST = {"int": -(2**31), "long": -(2**63)}
_WIDE = Context(prec=76)
"""Enough digits to add a step to any decimal; the default would round to 28 digits."""
_IN_TIME = (TransformKind.YEAR, TransformKind.MONTH, TransformKind.DAY, TransformKind.HOUR)


@dataclass(frozen=True, slots=True)
class PartitionTest:
    """A condition on one partition field."""

    place: int
    """The index of the field in its partition spec."""
    kind: PrimitiveType
    """The type of the field's values."""
    test: ColumnTest
    """The condition; its literal has the type ``condition_type(kind)``."""
    or_equal: tuple[Value, ...] = ()
    """More values that the partition of a matching row may have."""

    def may_hold(self, bounds: Bounds) -> Mask:
        """Return a mask of the bounds of this field that may include a matching value."""
        kind = condition_type(self.kind)
        mask = may_meet(self.test, bounds, kind)
        if self.or_equal:
            mask |= may_meet(replace(self.test, op=Op.IN, literal=self.or_equal), bounds, kind)
        return mask


def project(
    tests: Sequence[ColumnTest], spec: PartitionSpec, schema: Schema
) -> list[PartitionTest]:
    """Return conditions on the partitions of ``spec``.

    If a row meets all ``tests``, its partition meets all returned conditions.
    """
    found = []
    for place, field in enumerate(spec.fields):
        source = schema.field(field.source_id)
        if (
            len(field.source_ids) > 1
            or source is None
            or not isinstance(source.type, PrimitiveType)
        ):
            continue
        result = transform_result(field.transform, source.type)
        assert isinstance(result, PrimitiveType)  # because the column's type is primitive
        projection = _Projection(parse_transform(field.transform), source.type, result)
        for test in tests:
            asked = schema.named(test.column)
            if asked is None or asked.id != source.id:
                continue
            if (projected := projection.fitting(test)) is not None:
                wrapped = projection.wrapped() if projected.op in _UPPER else ()
                found.append(PartitionTest(place, result, projected, wrapped))
    return found


@dataclass(frozen=True, slots=True)
class _Projection:
    """Converts conditions on a column to conditions on one transform of the column."""

    transform: Transform
    source: PrimitiveType
    result: PrimitiveType

    def of(self, test: ColumnTest) -> ColumnTest | None:
        """Return the condition on values of the transform; None if it would exclude no
        partition.
        """
        kind = self.transform.kind
        if kind in (TransformKind.VOID, TransformKind.UNKNOWN):
            return None
        if kind is TransformKind.IDENTITY or test.op in _NULL_TESTS:
            return test
        match test.op:
            case Op.EQUAL:
                return replace(test, op=Op.IN, literal=self._any_of([test.literal]))
            case Op.IN:
                return replace(test, literal=self._any_of(test.literal))
            case Op.NOT_EQUAL:
                return None
        return self._range(test) if self.transform.keeps_order else None

    def fitting(self, test: ColumnTest) -> ColumnTest | None:
        """Return the condition as ``of`` does, but None if one of its literals does not fit the
        result type of the transform.
        """
        try:
            found = self.of(test)
            if found is not None:
                literals = found.literal if found.op is Op.IN else [found.literal]
                values_to_arrow(literals, condition_type(self.result))
        # For example the smallest decimal, which is rounded to one more digit, or a time after the
        # last hour of 32 bits.
        except InvalidRequestError:
            return None
        return found

    def wrapped(self) -> tuple[Value, ...]:
        """Return the results of ``truncate`` that overflow.

        Truncating a number close to the smallest number of its type gives a large number.
        """
        if self.transform.kind is not TransformKind.TRUNCATE or self.source.name not in _LEAST:
            return ()
        least = _LEAST[self.source.name]
        [result] = self._results([least])
        return (*self._of_ints([_LEAST["int"]]), *([result] if result > least else []))

    def _any_of(self, literals: Sequence[Value]) -> tuple[Value, ...]:
        there = [literal for literal in literals if literal is not None]
        results = self._results(there)
        rounded = map(self._after_rounding, results)
        return tuple(dict.fromkeys([*results, *rounded, *self._of_ints(there)]))

    def _of_ints(self, literals: Sequence[Value]) -> list[Value]:
        """Return the results of ``truncate`` that overflowed when this ``long`` column still had
        the type ``int``.
        """
        if self.transform.kind is not TransformKind.TRUNCATE or self.source.name != "long":
            return []
        least = _LEAST["int"]
        ints = [value for value in literals if least <= value < -least]
        return [value - 2 * least for value in self._results(ints) if value < least]

    def _range(self, test: ColumnTest) -> ColumnTest | None:
        if test.literal is None:
            return None
        is_upper = test.op in _UPPER
        strict = test.op in (Op.LESS, Op.GREATER)
        literal = self._next(test.literal, -1 if is_upper else 1) if strict else test.literal
        [result] = self._results([literal])
        if self.transform.kind is TransformKind.TRUNCATE and result > literal:
            return None  # truncating overflowed from the smallest to the largest numbers
        if is_upper:
            is_short = isinstance(result, str | bytes) and result == test.literal and strict
            op = Op.LESS if is_short else Op.LESS_EQUAL
            return replace(test, op=op, literal=self._after_rounding(result))
        return replace(test, op=Op.GREATER_EQUAL, literal=result)

    def _after_rounding(self, result: Value) -> Value:
        """Return the value that old writers may have stored in place of ``result``.

        It differs only for times before 1970. Old writers rounded towards zero, so such a time may
        be in the next partition.
        """
        return result + 1 if self.transform.kind in _IN_TIME and result < 0 else result

    def _next(self, literal: Value, direction: int) -> Value:
        """Return the next smaller (``direction=-1``) or next larger (1) value.

        Return the literal itself if it is the smallest or largest value of its type, and for types
        without a fixed step, such as strings.
        """
        beside = _beside(literal, direction, self._literal_type)
        try:
            values_to_arrow([beside], self._literal_type)
        except InvalidRequestError:  # the literal is the smallest or largest value of its type
            return literal
        return beside

    @property
    def _literal_type(self) -> AtomicType:
        found = condition_type(self.source)
        assert isinstance(found, AtomicType)
        return found

    def _results(self, literals: Sequence[Value]) -> list[Value]:
        values = values_to_arrow(literals, self._literal_type).cast(to_arrow_type(self.source))
        results: pa.Array = self.transform.apply(values)
        return values_from_arrow(results, condition_type(self.result))


def _beside(literal: Value, direction: int, literal_type: AtomicType) -> Value:
    """Return the next smaller (``direction=-1``) or next larger (1) value of a literal's type.

    For types without a fixed step, such as strings and floating-point numbers, return the literal
    itself.
    """
    match literal_type.name:
        case TypeName.INT | TypeName.BIGINT | TypeName.DATE:
            return literal + direction
        case TypeName.TIMESTAMP | TypeName.TIMESTAMP_LTZ:
            return literal + direction * timestamp_unit_nanos(literal_type)
        case TypeName.DECIMAL:
            step = Decimal((int(direction < 0), (1,), -literal_type.scale))
            return _WIDE.add(literal, step)
    return literal
