"""Rows are deleted by equal values, with NULL and NaN equal to themselves."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.iceberg.read import equality_keys
from lakeformat.iceberg.read.equality_keys import EqualityKeys
from lakeformat.iceberg.read.key_columns import key_values

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [None, 0, 1, -1, 2**62]),
    "text": (pa.string(), [None, "", "a", "ab", "é" * 9]),
    "double": (pa.float64(), [None, 0.0, -0.0, math.nan, 1.5]),
    "float": (pa.float32(), [None, 0.0, -0.0, math.nan, 1.5]),
    "decimal": (pa.decimal128(30, 2), [None, Decimal("0.00"), Decimal("1e20"), Decimal("-1.00")]),
    "boolean": (pa.bool_(), [None, True, False]),
    "day": (pa.date32(), [None, 0, 1]),
    "uuid": (pa.binary(2), [None, b"ab", b"ac"]),
}
TYPES = [kind for kind, _ in VALUES.values()]


def identity(value: Any) -> Any:
    """A text that equal values share; -0.0 is not 0.0."""
    return repr(value)


def keys() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.sampled_from(values) for _, values in VALUES.values()))


def columns(rows: list[tuple[Any, ...]], chosen: list[int]) -> list[pa.Array]:
    return [pa.array([row[place] for row in rows], TYPES[place]) for place in chosen]


@pytest.mark.parametrize("collide", [False, True])
@given(
    pool=st.lists(keys(), min_size=1, max_size=3),
    chosen=st.lists(st.sampled_from(range(len(TYPES))), min_size=1, max_size=3, unique=True),
    number=st.integers(0, 3),
    data=st.data(),
)
def test_a_row_is_deleted_by_a_newer_key_with_its_values(collide, pool, chosen, number, data):
    some = st.sampled_from(pool)
    deletes = data.draw(st.lists(st.tuples(some, st.integers(1, 3)), max_size=8))
    rows = data.draw(st.lists(some | keys(), min_size=1, max_size=8))
    with pytest.MonkeyPatch.context() as patch:
        if collide:  # every hash is one of two
            patch.setattr(equality_keys, "_MIX", np.uint64(1 << 63))
            patch.setattr(equality_keys, "_is_exact", lambda _: False)
        found = EqualityKeys(
            columns([key for key, _ in deletes], chosen),
            np.array([each for _, each in deletes], np.int64),
        ).deleted(columns(rows, chosen), number)

    def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(identity(row[place]) for place in chosen)

    newest: dict[Any, int] = {}
    for key, each in deletes:
        newest[key_of(key)] = max(each, newest.get(key_of(key), 0))
    assert found.tolist() == [newest.get(key_of(row), 0) > number for row in rows]


def test_numbers_are_found_wherever_they_are():
    least, most = -(2**63), 2**63 - 1
    for numbers in ([5], [most], [least, most], [*range(100), most], [*range(-100, 0, 3), least]):
        found = EqualityKeys([pa.array(numbers, pa.int64())], np.arange(len(numbers)))
        asked = [least, -101, -100, -3, -1, 0, 5, 6, 99, 2**62, most - 1, most]
        wanted = [numbers.index(each) if each in numbers else -1 for each in asked]
        rows = pa.array([*asked, None], pa.int64())
        assert found.numbers([rows]).tolist() == [*wanted, -1]


def test_no_keys_delete_nothing():
    none = EqualityKeys([pa.array([], pa.int64())], np.zeros(0, np.int64))
    assert none.deleted([pa.array([1, None])], 0).tolist() == [False, False]
    assert len(none) == 0


def test_the_key_inside_of_a_null_struct_is_null_whatever_value_lies_below_it():
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2])], names=["k"], mask=pa.array([False, True])
    )
    assert key_values(structs).to_pylist() == [1, None]
