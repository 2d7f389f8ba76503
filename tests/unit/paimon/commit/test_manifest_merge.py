"""Merging manifests: the choice of manifests, and unchanged live files."""

from __future__ import annotations

import itertools
import random
import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import decode_row, unframe_row
from lakeformat.paimon.commit.manifest_merge import (
    ManifestMerge,
    MergeLimits,
    merge_manifests,
    pick_manifests,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest import (
    FileKind,
    ManifestEntry,
    live_files,
    write_manifest,
)
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import MemoryStorage
from lakeformat.types.types import STRING, DataField, TypeName, atomic
from tests import sampling
from tests.manifest_entries import entries_in

TARGET = 100
LIMITS = MergeLimits(TARGET, 400, 3)


def meta(size: int, deleted: int = 0) -> ManifestMeta:
    return ManifestMeta(
        file_name=f"m{size}",
        file_size=size,
        num_added_files=1,
        num_deleted_files=deleted,
        schema_id=0,
    )


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([10, 10], None, id="too few small ones"),
        pytest.param([10, 10, 10], [(0, 3)], id="enough small ones at the end"),
        pytest.param([150, 150], None, id="large ones stay"),
        pytest.param([60, 60, 10], [(0, 2)], id="neighbours that reach the target"),
        pytest.param([60, 40, 10, 10], [(0, 2)], id="neighbours that just reach it"),
        pytest.param([100, 60, 10], None, id="one of just the target size is alone"),
        pytest.param([10, 150], [(0, 2)], id="a large one completes a small one"),
        pytest.param([150, 60, 60, 150, 5, 5, 5], [(1, 3), (4, 7)], id="several runs"),
    ],
)
def test_small_neighbours_are_merged(manifests, expected):
    merge = pick_manifests([meta(size) for size in manifests], LIMITS)
    assert (list(merge.runs) if merge else None) == expected
    assert merge is None or not merge.is_full


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param([(250, 1), (250, 1)], [(0, 2)], id="large ones that delete"),
        pytest.param([(150, 0), (99, 0)] * 5, [(n, n + 1) for n in (1, 3, 5, 7, 9)], id="small"),
        pytest.param([(500, 1)], None, id="one alone is not worth it"),
    ],
)
def test_everything_that_must_change_is_rewritten_once_it_is_large(manifests, expected):
    merge = pick_manifests([meta(*each) for each in manifests], LIMITS)
    assert (list(merge.runs) if merge else None) == expected
    assert merge is None or merge.is_full


DAY = DataField(0, "day", atomic(TypeName.INT))
SCHEMA = TableSchema(0, (DAY, DataField(1, "v", STRING)), 1, partition_keys=("day",))


def handle_with(options: dict[str, str]) -> TableHandle:
    schema = replace(SCHEMA, options=options)
    return TableHandle(MemoryStorage("merge"), TableLayout("t"), schema, Environment())


def day_row(day: int | None) -> bytes:
    if day is None:
        return bytes([0, 0, 0, 1, 0, 1]) + bytes(14)
    return (1).to_bytes(4, "big") + bytes(8) + struct.pack("<q", day)


def entry(name: int, day: int | None = 0) -> ManifestEntry:
    file = DataFileMeta(
        file_name=f"data-{name}",
        file_size=1,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
    )
    return ManifestEntry(FileKind.ADD, day_row(day), 0, -1, file)


def stored(handle: TableHandle, manifests) -> list[ManifestMeta]:
    metas = []
    for number, entries in enumerate(manifests):
        name = f"old-{number}"
        size = write_manifest(handle.storage, handle.layout, name, entries, handle.options)
        metas.append(summarise(name, size, entries, [DAY.type]))
    return metas


def merged(handle: TableHandle, metas, merge) -> list[ManifestMeta]:
    names = (f"new-{number}" for number in itertools.count())
    return merge_manifests(handle, metas, merge, lambda: next(names))


def live(handle: TableHandle, metas) -> list[ManifestEntry]:
    entries = []
    for each in metas:
        entries += entries_in(handle.storage, handle.layout, each.file_name)
    return live_files(entries, "t")


def story(chance: random.Random, commits: int) -> list[list[ManifestEntry]]:
    """Commits that add files, and delete and bring back some that earlier ones added."""
    alive: list[ManifestEntry] = []
    gone: list[ManifestEntry] = []
    manifests, names = [], itertools.count()
    for _ in range(commits):
        now: list[ManifestEntry] = []
        for _ in range(chance.randrange(1, 6)):
            if alive and chance.random() < 0.4:
                victim = alive.pop(chance.randrange(len(alive)))
                gone.append(victim)
                now.append(replace(victim, kind=FileKind.DELETE))
            elif gone and chance.random() < 0.2:
                alive.append(gone.pop())
                now.append(alive[-1])
            else:
                alive.append(entry(next(names), chance.choice([None, 1, 2, 3])))
                now.append(alive[-1])
        manifests.append(now)
    return manifests


@settings(max_examples=sampling.count(8, whole=60))
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 40_000), st.integers(2, 5))
def test_the_live_files_stay_the_same(seed, commits, threshold, min_count):
    options = {"manifest.target-file-size": "6000", "manifest.merge-min-count": str(min_count)}
    handle = handle_with(options | {"manifest.full-compaction-threshold-size": str(threshold)})
    metas = stored(handle, story(random.Random(seed), commits))
    merge = pick_manifests(metas, MergeLimits.of(handle.options))
    if merge is None:
        return
    after = merged(handle, metas, merge)
    assert live(handle, after) == live(handle, metas)
    if merge.is_full:
        assert all(each.num_deleted_files == 0 for each in after)


def test_a_full_merge_takes_along_the_large_manifest_that_holds_a_deleted_file():
    handle = handle_with({"manifest.target-file-size": "2000"})
    large = [entry(number, day=1) for number in range(300)]
    apart = [entry(number, day=7) for number in range(300, 600)]
    gone = [replace(large[5], kind=FileKind.DELETE)]
    metas = stored(handle, [large, apart, gone, [entry(999, day=2)]])

    after = merged(handle, metas, ManifestMerge(((2, 4),), is_full=True, reason=""))

    assert live(handle, after) == live(handle, metas)
    assert [each.file_name for each in after] == ["new-0", "old-1", "new-1"]


def test_new_manifests_are_not_left_below_the_target_size():
    handle = handle_with({"manifest.target-file-size": "4 kb"})
    metas = stored(handle, [[entry(n) for n in range(i, i + 50)] for i in range(0, 6000, 50)])
    after = merged(handle, metas, ManifestMerge(((0, len(metas)),), is_full=True, reason=""))
    assert len(after) > 1
    assert all(each.file_size >= 4 << 10 for each in after[:-1])
    assert live(handle, after) == live(handle, metas)


def test_a_file_added_twice_stops_the_merge():
    handle = handle_with({})
    metas = stored(handle, [[entry(1)], [entry(1)]])
    with pytest.raises(CorruptTableError, match="adds data-1 of bucket 0 twice"):
        merged(handle, metas, ManifestMerge(((0, 2),), is_full=False, reason=""))


def test_partition_statistics_are_exact_and_count_nulls():
    entries = [entry(1, 5), entry(2, None), entry(3, -2), entry(4, None)]
    stats = summarise("m", 1, entries, [DAY.type]).partition_stats
    bounds = [
        decode_row(unframe_row(row)[1], [DAY.type]) for row in (stats.min_values, stats.max_values)
    ]
    assert bounds == [(-2,), (5,)]
    assert stats.null_counts == (2,)
