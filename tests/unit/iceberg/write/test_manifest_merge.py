"""Manifests are packed as Java packs them: neighbours, the oldest ones into full packs."""

from __future__ import annotations

import pytest

from lakeformat.iceberg.write.manifest_merge import pack

PACKS = {
    "nothing": ([], []),
    "one": ([5], [[0]]),
    "all fit": ([3, 3, 4], [[0, 1, 2]]),
    "the newest are left over": ([5, 5, 5], [[0], [1, 2]]),
    "one larger than the target": ([3, 30, 3], [[0], [1], [2]]),
    "order is kept": ([9, 1, 2, 3, 9], [[0], [1, 2, 3], [4]]),
    "an empty manifest adds nothing": ([0, 10, 0], [[0, 1, 2]]),
}


@pytest.mark.parametrize("case", PACKS)
def test_neighbours_are_packed_from_the_oldest_one_on(case):
    sizes, expected = PACKS[case]
    assert [list(each) for each in pack(sizes, 10)] == expected
