"""A scan's splits: which files are read together, which without a merge, and by whomever."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import count, groupby

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.splits import bucket_splits
from tests.conformance.format_checklist.keyed_table import DELETE, KeyedTable
from tests.counting import CountingStorage

_warehouses = count()
COLUMNS = (("k", "INT NOT NULL"), ("v", "STRING"))
SMALL = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}


def keyed(tmp_path, **options) -> KeyedTable:
    named = {name.replace("_", "-"): text for name, text in options.items()}
    return KeyedTable(str(tmp_path / "t"), COLUMNS, ["k"], {"bucket": "1", **SMALL, **named})


def rows(*keys, value="a", **more):
    return [{"k": key, "v": value, **more} for key in keys]


def shapes(scan: Scan) -> list[tuple[int, bool]]:
    """Return the number of files of each split, and True if no merge is needed."""
    return [(len(split.files), split.raw_convertible) for split in scan.splits()]


def test_files_of_one_level_are_splits_of_their_own_read_without_a_merge(tmp_path):
    table = keyed(tmp_path)
    table.commit([*table.write(rows(1, 2), level=5), *table.write(rows(3, 4), level=5)])
    assert shapes(table.open().scan()) == [(1, True), (1, True)]


def test_files_that_share_keys_are_never_parted(tmp_path):
    table = keyed(tmp_path)
    table.commit(
        [
            *table.write(rows(1, 5), level=5),
            *table.write(rows(2, 3)),
            *table.write(rows(9)),
        ]
    )
    scan = table.open().scan()
    assert shapes(scan) == [(2, False), (1, True)]
    assert scan.to_arrow()["k"].to_pylist() == [1, 2, 3, 5, 9]


def test_neighbours_are_put_together_up_to_the_target_size(tmp_path):
    table = keyed(tmp_path)
    table.options["source.split.target-size"] = "10 mb"
    table.options["source.split.open-file-cost"] = "4 mb"
    table = KeyedTable(str(tmp_path / "u"), COLUMNS, ["k"], table.options)
    table.commit([e for key in range(5) for e in table.write(rows(key), level=5)])
    assert shapes(table.open().scan()) == [(2, True), (2, True), (1, True)]


def test_a_lone_file_with_deletes_is_merged_to_lose_them(tmp_path):
    table = keyed(tmp_path)
    table.commit(table.write([*rows(1), *rows(2, kind=DELETE)]))
    scan = table.open().scan()
    assert shapes(scan) == [(1, False)]
    assert (scan.to_arrow()["k"].to_pylist(), scan.count()) == ([1], 1)


def test_first_rows_wait_for_a_compaction_and_then_are_read_without_a_merge(tmp_path):
    table = keyed(tmp_path, merge_engine="first-row")
    table.commit(
        [
            *table.write(rows(1), level=4),
            *table.write(rows(2), level=5),
            *table.write(rows(3)),
        ]
    )
    scan = table.open().scan()
    assert shapes(scan) == [(1, True), (1, True)]
    assert scan.to_arrow()["k"].to_pylist() == [1, 2]


def test_a_split_is_read_elsewhere_and_all_of_them_give_all_rows(tmp_path):
    table = keyed(tmp_path)
    table.commit(
        [*table.write(rows(1, 5)), *table.write(rows(5, value="new")), *table.write(rows(9))]
    )
    splits = pickle.loads(pickle.dumps(table.open().scan(["v"]).splits()))
    elsewhere = table.open().scan(["v"])
    found = [pa.Table.from_batches(elsewhere.read(split))["v"].to_pylist() for split in splits]
    assert sorted(found) == [["a"], ["a", "new"]]


def test_a_split_of_another_snapshot_is_refused(tmp_path):
    table = keyed(tmp_path)
    table.commit(table.write(rows(1)))
    [split] = table.open().scan().splits()
    table.commit(table.write(rows(2)))
    with pytest.raises(
        InvalidRequestError, match="split belongs to snapshot 1, but this scan reads snapshot 2"
    ):
        list(table.open().scan().read(split))


def test_a_limit_plans_no_more_splits_than_it_needs(tmp_path):
    table = keyed(tmp_path)
    table.commit([e for key in range(5) for e in table.write(rows(key), level=5)])
    handle = table.open()._handle
    scan = Scan(handle, table.open().latest_snapshot(), None, limit=2)
    assert len(scan.splits()) == 2
    assert (scan.to_arrow().num_rows, scan.count()) == (2, 2)
    assert Scan(handle, table.open().latest_snapshot(), None, limit=0).to_arrow().num_rows == 0


def test_a_limit_cuts_merged_rows_too(tmp_path):
    table = keyed(tmp_path)
    table.commit([*table.write(rows(1, 2, 3)), *table.write(rows(2, 3, kind=DELETE))])
    scan = Scan(table.open()._handle, table.open().latest_snapshot(), None, limit=2)
    assert scan.to_arrow()["k"].to_pylist() == [1]


def test_files_of_an_append_bucket_come_in_the_order_they_were_written(tmp_path):
    table = keyed(tmp_path)
    first, second = table.write(rows(2)), table.write(rows(1))
    schema = replace(table.schema, primary_keys=())
    splits = bucket_splits(schema, 1, [*second, *first])
    assert [list(split.files) for split in splits] == [first, second]
    assert all(split.raw_convertible for split in splits)


def test_rows_come_as_polars_too(tmp_path):
    pl = pytest.importorskip("polars")
    table = keyed(tmp_path)
    table.commit(table.write(rows(1, 2)))
    found = table.open().scan().to_polars()
    assert isinstance(found, pl.DataFrame)
    assert found.rows() == [(1, "a"), (2, "a")]


def partitioned(*partitions, column="STRING", **options) -> lake.Table:
    """One commit for each partition, two buckets, and rows that name their place."""
    catalog = lake.open_catalog(f"memory://splits-{next(_warehouses)}/wh")
    catalog.create_database("shop")
    given = {name.replace("_", "."): text for name, text in options.items()}
    table = catalog.create_table(
        "shop.t",
        [("k", "INT"), ("p", column)],
        partition_by=["p"],
        options={"bucket": "2", "bucket-key": "k", **given},
    )
    for key, partition in enumerate(partitions):
        rows = [{"k": key, "p": partition}, {"k": key + 100, "p": partition}]
        table.write(pa.Table.from_pylist(rows, table.schema.arrow_schema()))
    return table


def read_order(table) -> list:
    """The partitions as they come, each once as long as it is not left."""
    return [value for value, _ in groupby(table.scan().to_arrow()["p"].to_pylist())]


SORTED = {"scan_plan-sort-partition": "true"}


def test_partitions_come_as_they_were_first_written_to():
    assert read_order(partitioned("b", "c", "a")) == ["b", "c", "a"]


def test_partitions_come_in_the_order_of_their_values_if_the_table_says_so():
    table = partitioned("b", None, "\u00e9", "c", "b", "a", **SORTED)
    assert read_order(table) == [None, "a", "b", "c", "\u00e9"]
    assert [split.partition for split in table.scan(limit=1).splits()] == [
        table.scan().splits()[0].partition
    ]
    assert table.scan(limit=1).to_arrow()["p"].to_pylist() == [None]


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), max_size=6))
@settings(max_examples=15, deadline=None)
def test_partitions_are_numbers_where_they_are_of_numbers(partitions):
    table = partitioned(*partitions, column="INT", **SORTED)
    nulls = [None] if None in partitions else []
    assert read_order(table) == nulls + sorted({p for p in partitions if p is not None})


def test_the_first_state_of_a_stream_is_in_this_order_too():
    table = partitioned("b", "c", "a", **SORTED)
    rows = pa.concat_tables(part.to_arrow() for part in table.stream("latest-full"))
    assert [value for value, _ in groupby(rows["p"].to_pylist())] == ["a", "b", "c"]


def test_queues_keep_the_order_of_their_rows():
    table = partitioned("b", "a", "b", "a", **SORTED)
    found = table.scan().to_arrow().filter(pc.field("k") < 100).to_pylist()
    assert [(row["p"], row["k"]) for row in found] == [("a", 1), ("a", 3), ("b", 0), ("b", 2)]


def reads_of_vectors(files: int) -> int:
    """The reads of index files in a scan of this many splits, each of a file with deleted rows."""
    catalog = lake.open_catalog(f"memory://splits-{next(_warehouses)}/wh")
    catalog.create_database("shop")
    options = {"bucket": "-1", "deletion-vectors.enabled": "true", **SMALL}
    table = catalog.create_table("shop.t", [("k", "INT")], options=options)
    for key in range(files):
        table.write(pa.table({"k": pa.array([key, key + 100], pa.int32())}))
    for key in range(files):
        table.delete(f"k = {key}")
    counting = CountingStorage(table._handle.storage)
    scan = Scan(replace(table._handle, storage=counting), table.latest_snapshot(), None)
    assert shapes(scan) == [(1, True)] * files
    assert scan.to_arrow()["k"].to_pylist() == list(range(100, 100 + files))
    return sum("/index/" in path for _, path in counting.calls)


def test_a_split_reads_the_vectors_of_its_own_files_only():
    assert (reads_of_vectors(4), reads_of_vectors(12)) == (4, 12)
