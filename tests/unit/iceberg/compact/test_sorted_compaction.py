"""A compaction with the strategy sort or zorder: the same rows, in order across its files."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact import run as unit_run
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import publish_change
from lakeformat.rows.spill import SpillSettings
from tests.sampling import SEED
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.write.made_tables import entries_of, made_table, rows_of

BY_K = SortOrder(3, (SortField((2,), "identity", "desc", "nulls-last"),))
MANY_FILES = {"target_file_bytes": 1000, "min_file_bytes": 1, "max_file_bytes": 10_000}


def filled(storage, version: int = 2, *, commits: int = 5, rows: int = 60, **more) -> TableHandle:
    """Commits of rows in no order; ``k`` has few values, and null."""
    handle = made_table(storage, version, **more)
    chance = random.Random(SEED)
    ids = chance.sample(range(1000), commits * rows)
    texts = [chance.choice([None, "", "a", "b", "ab", "ä"]) for _ in ids]
    table = pa.table({"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string())})
    for first in range(0, len(ids), rows):
        IcebergTable(handle).write(table.slice(first, rows))
    return handle


def ordered_by(handle: TableHandle, order: SortOrder) -> TableHandle:
    """Give the table a sort order, without sorting its files."""

    def change(loaded):
        orders = (*loaded.metadata.sort_orders, order)
        return replace(loaded.metadata, sort_orders=orders, default_sort_order_id=order.order_id)

    commit_metadata(handle, change)
    return handle


def rows_by_file(handle: TableHandle) -> list[list[dict]]:
    scan = IcebergTable(handle).scan()
    splits = sorted(scan.splits(), key=lambda each: each.file.path)
    return [[row for batch in scan.read(each) for row in batch.to_pylist()] for each in splits]


def in_order(handle: TableHandle) -> list[dict]:
    return [row for rows in rows_by_file(handle) for row in rows]


def order_ids(handle: TableHandle) -> set[int]:
    return {each["sort_order_id"] for each in entries_of(handle) if each["status"] == 1}


def compact(handle: TableHandle, **options):
    return IcebergTable(handle).compact(**options)


def test_the_order_of_the_table_is_used_and_named_in_the_files(storage):
    handle = ordered_by(filled(storage), BY_K)
    before = rows_of(handle)
    report = compact(handle, strategy="sort")
    assert (report.strategy, report.files_in, report.files_out) == ("sort", 5, 1)
    found = [row["k"] for row in in_order(handle)]
    texts = [each for each in found if each is not None]
    assert found == sorted(texts, key=str.encode, reverse=True) + [None] * (300 - len(texts))
    assert order_ids(handle) == {3}
    assert rows_of(handle) == before


def test_a_given_order_has_the_id_of_the_same_order_of_the_table_or_none(storage):
    handle = ordered_by(filled(storage), BY_K)
    compact(handle, strategy="sort", order_by=["id"])
    assert [row["id"] for row in in_order(handle)] == [row["id"] for row in rows_of(handle)]
    assert order_ids(handle) == {0}
    compact(handle, strategy="sort", order_by=["k DESC NULLS LAST"], rewrite_all=True)
    assert order_ids(handle) == {3}


KEYS = {
    "id": lambda row: row["id"],
    "id desc": lambda row: -row["id"],
    "k": lambda row: (row["k"] is not None, (row["k"] or "").encode()),
    "k nulls last": lambda row: (row["k"] is None, (row["k"] or "").encode()),
    "truncate(100, id)": lambda row: row["id"] // 100,
}


@pytest.mark.parametrize("memory", [1 << 20, 4 << 10])
@pytest.mark.parametrize("keys", [["id"], ["k", "id desc"], ["truncate(100, id)", "k nulls last"]])
def test_the_files_of_a_group_follow_each_other_also_beyond_memory(
    storage, monkeypatch, keys, memory
):
    monkeypatch.setattr(unit_run, "_SPILL", SpillSettings(write_buffer_size_bytes=memory))
    handle = filled(storage)
    before = rows_of(handle)
    report = compact(handle, order_by=keys, **MANY_FILES)
    sizes = [len(rows) for rows in rows_by_file(handle)]
    assert len(sizes) == report.files_out > 3
    assert max(sizes) - min(sizes) <= len(sizes)
    found = in_order(handle)
    places = [[KEYS[key](row) for key in keys] for row in found]
    assert places == sorted(places)
    assert sorted(found, key=KEYS["id"]) == before


def test_rows_along_a_curve_are_in_files_that_are_narrow_in_every_column(storage):
    handle = made_table(storage, columns={"id": "long", "y": "long"})
    points = [(x, y) for x in range(32) for y in range(32)]
    random.Random(SEED).shuffle(points)
    for first in range(0, len(points), 256):
        x, y = zip(*points[first : first + 256], strict=True)
        IcebergTable(handle).write(pa.table({"id": x, "y": y}))
    report = compact(
        handle,
        order_by=["id", "y"],
        order_strategy="zorder",
        **{**MANY_FILES, "target_file_bytes": 300},
    )
    assert (report.strategy, order_ids(handle)) == ("zorder", {0})
    assert sorted((row["id"], row["y"]) for row in in_order(handle)) == sorted(points)
    files = rows_by_file(handle)
    assert len(files) > 8
    for name in ("id", "y"):
        values = [[row[name] for row in rows] for rows in files]
        assert sum(max(each) - min(each) for each in values) < 20 * len(files)


@pytest.mark.parametrize("how", [{}, {"order_strategy": "order"}, {"strategy": "full"}])
def test_all_files_are_sorted_with_the_arguments_of_paimon_tables(storage, how):
    handle = filled(storage, commits=1)
    report = compact(handle, order_by="id", **how)
    assert (report.strategy, report.files_in) == ("sort", 1)
    assert [row["id"] for row in in_order(handle)] == [row["id"] for row in rows_of(handle)]
    assert compact(handle, order_by="id", order_strategy="zorder").strategy == "zorder"


def test_the_strategy_sort_leaves_files_alone_that_are_not_due(storage):
    handle = filled(storage, commits=2)
    report = compact(handle, strategy="sort", order_by=["id"])
    assert report.reason == "no action needed: no group of files is due"


def test_deleted_rows_are_left_out_and_rows_keep_their_ids(storage):
    handle = filled(storage, 3)
    [first, *rest] = rows_of(handle)
    delete_by_key(handle, first["id"])
    columns = ["id", "_row_id", "_last_updated_sequence_number"]

    def lineage():
        return IcebergTable(handle).scan(columns).to_arrow().sort_by("id").to_pylist()

    before = lineage()
    assert compact(handle, order_by=["k", "id"]).rows_out == len(rest)
    assert lineage() == before
    assert rows_of(handle) == rest


def test_files_of_an_older_spec_are_sorted_within_each_new_partition(storage):
    handle = filled(storage)
    spec = PartitionSpec(1, (PartitionField((1,), 1000, "id_trunc", "truncate[100]"),))

    def change(loaded):
        specs = (*loaded.metadata.partition_specs, spec)
        return replace(
            loaded.metadata, partition_specs=specs, default_spec_id=1, last_partition_id=1000
        )

    commit_metadata(handle, change)
    compact(handle, strategy="sort", order_by=["k", "id"])
    files = rows_by_file(handle)
    assert len(files) == 10
    for rows in files:
        assert len({row["id"] // 100 for row in rows}) == 1
        places = [(KEYS["k"](row), row["id"]) for row in rows]
        assert all(one < other for one, other in pairwise(places))


def test_files_whose_rows_no_manifest_counts_are_sorted_into_one(storage):
    handle = made_table(storage)
    for ids in ([3, 1], [2, 0]):
        with IcebergTable(handle).new_writer() as writer:
            writer.write(pa.table({"id": ids}))
            entries = writer.prepare()[0].entries
        place = entries.schema.get_field_index("record_count")
        unknown = pa.array([-1], pa.int64())
        entries = entries.set_column(place, entries.schema.field(place), unknown)
        publish_change(handle, ChangedFiles([entries]), commit=None)
    compact(handle, strategy="sort", order_by=["id"], rewrite_all=True)
    assert [[row["id"] for row in each] for each in rows_by_file(handle)] == [[0, 1, 2, 3]]


def test_a_plan_names_the_order(storage):
    plan = IcebergTable(filled(storage)).plan_compaction(order_by=["bucket(4, id) desc", "k"])
    assert ", by bucket[4](id) desc nulls last, k asc nulls first: 1 group" in str(plan)
    assert plan.to_dict()["order"] == "bucket[4](id) desc nulls last, k asc nulls first"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "sort"}, "has no sort order: name the columns to sort by in order_by"),
        ({"strategy": "zorder"}, "'zorder' sorts by columns: name them in order_by"),
        ({"order_by": ["i"]}, "'i' names no column of the table"),
        ({"order_by": ["id", "id"]}, "order_by names 'id' twice"),
        ({"order_by": []}, "order_by names no column"),
        ({"order_by": ["id"], "strategy": "minor"}, "cannot be combined with strategy='minor'"),
        (
            {"order_by": ["id"], "strategy": "minor", "order_strategy": "zorder"},
            "Use strategy='zorder' to sort only the files",
        ),
        ({"order_strategy": "order"}, "order_strategy='order' sorts by columns: name them"),
        (
            {"order_by": ["id"], "order_strategy": "hilbert"},
            "must be one of order, zorder, got 'hilbert'",
        ),
        (
            {"strategy": "sort", "order_by": ["id"], "order_strategy": "zorder"},
            "strategy='sort' contradicts order_strategy='zorder'",
        ),
        (
            {"strategy": "sort", "order_by": ["id"], "max_output_size": 3},
            "max_output_size has an effect only with strategy='zorder', and the strategy is 'sort'",
        ),
        (
            {"compression_factor": 2},
            "compression_factor has an effect only with strategy='sort' or 'zorder'",
        ),
        (
            {"strategy": "zorder", "order_by": ["id"], "var_length_contribution": 0},
            "var_length_contribution must be more than 0, got 0",
        ),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_by_name(storage, options, message):
    with pytest.raises(InvalidRequestError, match=message):
        compact(made_table(storage), **options)


def test_an_unknown_transform_in_the_order_of_the_table_is_refused(storage):
    order = SortOrder(1, (SortField((1,), "zigzag", "asc", "nulls-first"),))
    handle = ordered_by(filled(storage, commits=1), order)
    with pytest.raises(UnsupportedError, match="because a key has an unknown transform"):
        compact(handle, strategy="sort")
