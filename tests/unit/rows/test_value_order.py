"""Rows are ordered by columns, each ascending or descending; equal rows keep their order."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from lakeformat.files.parquet.dictionary_columns import SAMPLE_ROWS
from lakeformat.rows.repeated_values import with_dictionaries
from lakeformat.rows.value_order import positions_by_values

ROWS = 4 * SAMPLE_ROWS
CHANCE = random.Random(11)
LETTERS = ["", "a", "ab", "b", "ä", None]
COLUMNS = {
    "few texts": pa.array(CHANCE.choices(LETTERS, k=ROWS)),
    "texts": pa.array([f"{CHANCE.random():.4f}" for _ in range(ROWS)]),
    "numbers": pa.array([CHANCE.randrange(-9, 9) for _ in range(ROWS)], pa.int32()),
    "doubles": pa.array(CHANCE.choices([-math.inf, -1.5, 0.0, 2.5, math.nan, None], k=ROWS)),
    "truth": pa.array(CHANCE.choices([True, False, None], k=ROWS)),
}


def comparable(value: object) -> tuple:
    """Nulls first, NaN last."""
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (0,) if value is None else (1, value)


def expected(names: list[str], directions: list[str]) -> list[int]:
    order = list(range(ROWS))
    for name, direction in [*zip(names, directions, strict=True)][::-1]:
        keys = [comparable(value) for value in COLUMNS[name].to_pylist()]
        if direction == "descending":  # from the last key to the first, and equal ones stay
            ranks = {key: -rank for rank, key in enumerate(sorted(set(keys)))}
            keys = [ranks[key] for key in keys]
        order.sort(key=keys.__getitem__)
    return order


@pytest.mark.parametrize(
    ("names", "directions"),
    [
        (["few texts"], ["ascending"]),
        (["few texts", "numbers"], ["descending", "ascending"]),
        (["numbers", "texts"], ["ascending", "descending"]),
        (["doubles", "few texts", "truth"], ["descending", "descending", "ascending"]),
        (["truth", "doubles"], ["descending", "ascending"]),
    ],
)
def test_rows_are_ordered_by_one_column_after_the_other(names, directions):
    found = positions_by_values([COLUMNS[name] for name in names], directions)
    assert found.tolist() == expected(names, directions)


def test_repetitive_texts_are_ordered_by_their_ranks():
    """The texts of these tests repeat often enough."""
    [few, many] = with_dictionaries(
        pa.table([COLUMNS["few texts"], COLUMNS["texts"]], ["few", "many"]), ()
    ).columns
    assert pa.types.is_dictionary(few.type)
    assert not pa.types.is_dictionary(many.type)
