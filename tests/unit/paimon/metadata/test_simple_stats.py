"""The bounds of a manifest exclude partitions; very many partitions are not tested."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.metadata.simple_stats import (
    EMPTY_STATS,
    MOST_TESTED,
    may_contain_any,
    partition_stats,
)
from lakeformat.types.types import STRING

TYPES = [STRING]


def days(*given: int | None) -> list[bytes]:
    texts = [None if day is None else f"{day:03}" for day in given]
    return [frame_row(encode_row((text,), TYPES), 1) for text in texts]


BOUNDS = partition_stats(pa.array(days(10, 20), pa.large_binary()), TYPES)


@pytest.mark.parametrize("as_array", [True, False])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((15,), True),
        ((9, 21), False),
        ((9, 20), True),
        ((None,), True),
        ((), False),
        (range(100, 100 + MOST_TESTED), False),
        (range(100, 101 + MOST_TESTED), True),
    ],
)
def test_a_manifest_is_skipped_if_all_partitions_are_outside_its_bounds(given, found, as_array):
    rows = days(*given)
    chosen = pa.array(rows, pa.large_binary()) if as_array else dict.fromkeys(rows)
    assert may_contain_any(BOUNDS, chosen, TYPES) is found


def test_without_bounds_no_partition_is_excluded():
    assert may_contain_any(EMPTY_STATS, days(1), TYPES)
