"""Sketches count few values exactly and many nearly, and have the compact form of Java."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.iceberg.analyze.theta_sketch import ThetaSketch
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes


def sketch_of(*parts) -> ThetaSketch:
    found = ThetaSketch()
    for part in parts:
        found.add(single_value_bytes(pa.array(part, pa.int64())))
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 4096])
def test_few_values_are_counted_exactly(count):
    assert sketch_of(range(count), range(count), [None]).estimate == count


def test_many_values_are_estimated():
    parts = [np.arange(start, start + 60_000) for start in range(0, 200_000, 40_000)]
    found = sketch_of(*parts)
    assert abs(found.estimate - 220_000) < 0.05 * 220_000
    assert len(found.to_bytes()) == 24 + 8 * 4096


def test_parts_in_another_order_make_the_same_sketch():
    first, second = np.arange(9_000), np.arange(5_000, 30_000)
    assert sketch_of(first, second).to_bytes() == sketch_of(second, first).to_bytes()


def test_the_heads_are_those_of_java():
    assert sketch_of().to_bytes().hex() == "01030300001e0000"
    assert sketch_of([7]).to_bytes()[:8].hex() == "01030300003acc93"
    assert sketch_of([7, 8]).to_bytes()[:16].hex() == "02030300001acc93020000000000803f"


def test_empty_texts_and_nulls_do_not_count():
    found = ThetaSketch()
    found.add(pa.array([b"", None, b"a"], pa.binary()))
    assert found.estimate == 1
