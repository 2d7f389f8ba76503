# SPDX-License-Identifier: Apache-2.0
"""Compares the conditions of a scan with known bounds of values, to skip files.

A file is skipped only if it is certain that no row matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.types.types import AtomicType, DataType, TypeName
from lakeformat.types.values import Value, values_to_arrow

__all__ = [
    "Alternatives",
    "Bounds",
    "ColumnTest",
    "Conjunction",
    "Mask",
    "Op",
    "conjunctions",
    "in_any",
    "may_meet",
    "on_columns",
]

Mask: TypeAlias = NDArray[np.bool_]


class Op(StrEnum):
    """A comparison of a column with a value; only ``is null`` is true for a null."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    IN = "in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """One comparison of a column with a value, or a test for null.

    The literal is a Python value of a type listed in ``types/values.py``.
    """

    column: str
    op: Op
    literal: Value = None
    """The value; for ``in`` a tuple of values, for ``is null`` and ``is not null`` None."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Groups of conditions; a row must meet all conditions of at least one group."""

    branches: tuple[tuple[ColumnTest, ...], ...]
    """The groups. No group is empty, because every row would meet an empty group."""


Conjunction: TypeAlias = "Sequence[ColumnTest | Alternatives]"
"""Conditions that a matching row must all meet."""


def conjunctions(conditions: Conjunction) -> Iterator[list[list[ColumnTest]]]:
    """Yield lists of alternatives; each alternative is a list of comparisons.

    A row meets an alternative if all its comparisons are true. A row that matches ``conditions``
    meets at least one alternative of every list.
    """
    plain = [each for each in conditions if isinstance(each, ColumnTest)]
    groups = [each.branches for each in conditions if isinstance(each, Alternatives)]
    yield from ([[*plain, *branch] for branch in branches] for branches in groups)
    if not groups:
        yield [plain]


def in_any(conditions: Conjunction, ask: Callable[[Sequence[ColumnTest]], Mask]) -> Mask:
    """Return the mask for ``conditions``, combined from the masks that ``ask`` returns.

    ``ask`` returns the mask for one list of comparisons, which must all be true.
    """
    groups = [[ask(each) for each in lists] for lists in conjunctions(conditions)]
    found: Mask = np.logical_and.reduce([np.logical_or.reduce(masks) for masks in groups])
    return found


def on_columns(conditions: Conjunction, names: Collection[str]) -> Conjunction:
    """Return the conditions that can be checked with the columns ``names`` alone.

    Comparisons of other columns are left out. ``Alternatives`` are left out if one of their groups
    would become empty.
    """
    found: list[ColumnTest | Alternatives] = []
    for each in conditions:
        if isinstance(each, ColumnTest):
            found += [each] if each.column in names else []
            continue
        branches = [tuple(c for c in branch if c.column in names) for branch in each.branches]
        found += [Alternatives(tuple(branches))] if all(branches) else []
    return found


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest and largest value of one column in each file, and the counts of nulls, rows and
    NaN; null if unknown.
    """

    least: pa.Array
    most: pa.Array
    nulls: pa.Array
    """The number of null values in each file."""
    rows: pa.Array
    nans: pa.Array | None = None
    """The number of NaN values in each file; None if unknown for all files. The bounds do not
    cover NaN.
    """


def may_meet(condition: ColumnTest, bounds: Bounds, data_type: DataType) -> Mask:
    """Return a mask of files; False means that no row of the file can meet the condition."""
    no_nulls = pc.equal(bounds.nulls, 0)
    only_nulls = pc.equal(bounds.nulls, bounds.rows)
    if condition.op is Op.IS_NULL:
        return ~_is_true(no_nulls)
    ruled_out = _is_true(only_nulls)
    if condition.op is not Op.IS_NOT_NULL and isinstance(data_type, AtomicType):
        ruled_out |= _is_true(_out_of_bounds(condition, bounds, data_type))
    return ~ruled_out


def _out_of_bounds(condition: ColumnTest, bounds: Bounds, data_type: AtomicType) -> pa.Array:
    """Return, for each file, True if its bounds exclude every match; otherwise False or null."""
    if condition.op is not Op.IN:
        return _beyond(condition.op, condition.literal, bounds, data_type)
    return _beyond_all(condition.literal, bounds, data_type)


def _beyond_all(literals: tuple[Value, ...], bounds: Bounds, data_type: AtomicType) -> pa.Array:
    """Return, for each file, True if its bounds exclude all literals; otherwise False or null."""
    ordered = _in_order(literals, data_type)
    if ordered is None:
        return _nowhere(bounds)
    if not len(ordered):
        return pa.array(np.ones(len(bounds.rows), np.bool_))
    least, most = bounds.least, bounds.most
    if _is_floating(data_type):
        least, most = _without_nan(least), _without_nan(most)
    known = _are_known(least, most)
    first, end = _places(pc.less, ordered, least), _places(pc.less_equal, ordered, most)
    return pc.and_(known, pa.array(first >= end))


@lru_cache(maxsize=8)
def _in_order(literals: tuple[Value, ...], data_type: AtomicType) -> pa.Array | None:
    """Return the literals without nulls, sorted; None if a literal is NaN.

    A list with NaN excludes no file. The result is cached, because it is the same for all files.
    """
    there = [literal for literal in literals if literal is not None]
    if any(isinstance(literal, float) and math.isnan(literal) for literal in there):
        return None
    values = values_to_arrow(there, data_type)
    return values.take(pc.sort_indices(values)) if there else values


def _places(
    is_before: Callable[[pa.Array, pa.Array], pa.Array], ordered: pa.Array, values: pa.Array
) -> NDArray[np.int64]:
    """Return, for each of ``values``, the number of elements of ``ordered`` that are before it.

    ``is_before`` compares an element with a value. The number for a null is arbitrary.
    """
    low = np.zeros(len(values), np.int64)
    high = np.full(len(values), len(ordered), np.int64)
    while (is_open := low < high).any():
        middle = (low + high) // 2
        there = ordered.take(pa.array(np.minimum(middle, len(ordered) - 1)))
        before = _is_true(is_before(there, values)) & is_open
        low = np.where(before, middle + 1, low)
        high = np.where(is_open & ~before, middle, high)
    return low


def _beyond(op: Op, literal: Value, bounds: Bounds, data_type: AtomicType) -> pa.Array:
    if literal is None:
        return pa.array(np.ones(len(bounds.rows), np.bool_))
    least, most = bounds.least, bounds.most
    if isinstance(literal, float) and math.isnan(literal):
        only_nan = op in (Op.EQUAL, Op.GREATER_EQUAL) and bounds.nans is not None
        return pc.equal(bounds.nans, 0) if only_nan else _nowhere(bounds)
    if _is_floating(data_type):
        least, most = _without_nan(least), _without_nan(most)
    [value] = values_to_arrow([literal], data_type)
    above, below = pc.greater(least, value), pc.less(most, value)
    known = _are_known(least, most)
    match op:
        case Op.EQUAL:
            beyond = pc.or_(above, below)
        case Op.NOT_EQUAL:
            beyond = pc.and_(pc.equal(least, value), pc.equal(most, value))
        case Op.LESS:
            beyond = pc.greater_equal(least, value)
        case Op.LESS_EQUAL:
            beyond = above
        case Op.GREATER:
            beyond = pc.less_equal(most, value)
        case _:
            beyond = below
    if _is_floating(data_type) and op in (Op.GREATER, Op.GREATER_EQUAL, Op.NOT_EQUAL):
        # A NaN is larger than all numbers, and a file may have one outside its bounds.
        if bounds.nans is None:
            return _nowhere(bounds)
        known = pc.and_(known, pc.equal(bounds.nans, 0))
    return pc.and_(known, beyond)


def _are_known(least: pa.Array, most: pa.Array) -> pa.Array:
    """Return True for each file whose two bounds can be used; otherwise False or null.

    A bound is not reliable if the other one is unknown, or if the lower one is above the upper one.
    """
    return pc.less_equal(least, most)


def _is_floating(data_type: AtomicType) -> bool:
    return data_type.name in (TypeName.FLOAT, TypeName.DOUBLE)


def _without_nan(bound: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_nan(bound), pa.scalar(None, bound.type), bound)


def _nowhere(bounds: Bounds) -> pa.Array:
    return pa.array(np.zeros(len(bounds.rows), np.bool_))


def _is_true(known: pa.Array) -> Mask:
    mask: Mask = known.fill_null(False).to_numpy(zero_copy_only=False)
    return mask
