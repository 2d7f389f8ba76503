"""DELETE and UPDATE of tables without primary key: rows are deleted, other files are kept."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.read.deletions import find_vectors
from lakeformat.paimon.read.plan import plan_files

_warehouses = itertools.count()
MARKED = {"deletion-vectors.enabled": "true"}
QUEUE = {"bucket": "1", "bucket-key": "k"}
TABLES = pytest.mark.parametrize(
    "options",
    [{}, MARKED, QUEUE, {**QUEUE, **MARKED}],
    ids=["copy", "marks", "queue-copy", "queue-marks"],
)


def new_table(options: dict[str, str], *, partition_by: list[str] | None = None, **columns):
    catalog = lake.open_catalog(f"memory://row-changes-{next(_warehouses)}/")
    catalog.create_database("shop")
    kinds = [("p", "STRING"), ("k", "INT"), ("v", "STRING")]
    kinds += columns.items()
    return catalog.create_table(
        "shop.t", kinds, partition_by=partition_by or [], options={"bucket": "-1", **options}
    )


def add(table: lake.Table, keys, p: str = "a", v: str = "old") -> None:
    keys = list(keys)
    table.write(
        pa.table({"p": [p] * len(keys), "k": pa.array(keys, pa.int32()), "v": [v] * len(keys)})
    )


def three_files(options: dict[str, str]) -> lake.Table:
    """Keys 0 to 11, four in a file."""
    table = new_table(options)
    for number in range(3):
        add(table, range(number * 4, number * 4 + 4))
    return table


def rows(table: lake.Table) -> list[tuple]:
    found = table.scan(columns=["k", "v"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def keys(table: lake.Table) -> list[int]:
    return [key for key, _ in rows(table)]


def files(table: lake.Table) -> list[str]:
    return [entry.file.file_name for entry in plan_files(table._handle, table.latest_snapshot())]


@TABLES
def test_true_selects_all_rows_of_an_unpartitioned_table(options):
    table = three_files(options)
    assert table.update("TRUE AND NOT FALSE", {"v": "new"}).rows == 12
    assert rows(table) == [(key, "new") for key in range(12)]
    assert table.delete("TRUE").rows == 12
    assert rows(table) == []


@TABLES
def test_the_rows_that_meet_the_condition_go_and_no_other(options):
    table = three_files(options)
    report = table.delete("k = 1 OR k = 6")
    assert keys(table) == [0, 2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert (report.rows, report.attempts, report.replayed) == (2, 1, False)
    assert table.scan(snapshot=3).count() == 12


@TABLES
def test_the_rows_get_their_new_values_and_no_other_does(options):
    table = three_files(options)
    report = table.update("k IN (1, 6)", {"v": "new"})
    assert [row for row in rows(table) if row[1] == "new"] == [(1, "new"), (6, "new")]
    assert keys(table) == list(range(12))
    assert report.rows == 2


def test_a_snapshot_says_what_was_done():
    table = three_files({})
    table.delete("k = 1")
    table.update("k = 2", {"v": "new"})
    found = [(each.commit_kind, each.operation) for each in table.snapshots()[-2:]]
    assert found == [(CommitKind.OVERWRITE, "DELETE"), (CommitKind.OVERWRITE, "UPDATE")]
    assert table.latest_snapshot().total_record_count == 12 - 1


def test_only_files_with_such_rows_are_written_again():
    table = three_files({})
    before = files(table)
    report = table.delete("k = 5")
    assert len(set(files(table)) & set(before)) == 2
    assert (report.files_read, report.files_rewritten, report.files_added) == (1, 1, 1)


def test_with_deletion_vectors_the_files_stay():
    table = three_files(MARKED)
    before = files(table)
    report = table.delete("k = 5")
    assert files(table) == before
    assert (report.method, report.files_marked, report.bytes_added) == ("deletion vectors", 1, 0)
    assert keys(table) == [key for key in range(12) if key != 5]


@TABLES
def test_a_file_without_a_row_left_goes_whole(options):
    table = three_files(options)
    report = table.delete("k < 6")
    assert keys(table) == list(range(6, 12))
    assert report.files_removed == 1
    assert len(files(table)) == 2


@TABLES
def test_rows_that_are_deleted_already_do_not_count(options):
    table = three_files(options)
    table.delete("k = 5")
    assert table.delete("k IN (4, 5, 6)").rows == 2
    assert table.delete("k IN (4, 5, 6)").rows == 0
    table.delete("k = 7")
    assert keys(table) == [0, 1, 2, 3, 8, 9, 10, 11]
    assert find_vectors(table._handle, table.latest_snapshot()) == {}


@TABLES
def test_what_is_marked_or_rewritten_is_compacted_like_any_other(options):
    table = three_files(options)
    table.delete("k IN (1, 6)")
    table.update("k = 9", {"v": "new"})
    before = rows(table)
    table.compact()
    assert rows(table) == before
    table.delete("k = 9")
    assert keys(table) == [0, 2, 3, 4, 5, 7, 8, 10, 11]


@TABLES
def test_rows_without_a_value_meet_no_comparison(options):
    table = new_table(options)
    table.write(pa.table({"p": ["a"] * 3, "k": pa.array([1, None, 3], pa.int32()), "v": ["x"] * 3}))
    assert table.delete("NOT k = 1").rows == 1
    assert table.scan(columns=["k"]).to_arrow()["k"].to_pylist() == [1, None]


@TABLES
def test_where_nothing_meets_the_condition_there_is_no_snapshot(options):
    table = three_files(options)
    for report in (table.delete("k = 77"), table.update("v = 'none'", {"v": "new"})):
        assert (report.rows, report.snapshot_id) == (0, None)
        assert report.reason == "no row meets the condition, so no snapshot was made"
    assert table.latest_snapshot().id == 3
    assert new_table(options).delete("k = 1").rows == 0


@TABLES
def test_a_dry_run_counts_and_changes_nothing(options):
    table = three_files(options)
    before = table._handle.storage.files(table._handle.layout.root)
    report = table.delete("k = 1 OR k >= 8", dry_run=True)
    assert (report.rows, report.files_removed, report.snapshot_id) == (5, 1, None)
    assert report.files_marked + report.files_rewritten == 1
    assert report.reason == "5 rows would be deleted; nothing was changed"
    none = table.update("v = 'none'", {"v": "new"}, dry_run=True)
    assert none.reason == "0 rows would be updated; nothing was changed"
    assert table._handle.storage.files(table._handle.layout.root) == before


@TABLES
def test_the_same_commit_twice_changes_rows_once(options):
    table = three_files(options)
    commit = lake.CommitId("nightly", 1)
    plus_ten = {"k": lambda rows: pc.add(rows["k"], pa.scalar(10, pa.int32()))}
    first = table.update("k < 3", plus_ten, commit=commit)
    again = table.update("k < 13", plus_ten, commit=commit)
    assert (again.replayed, again.snapshot_id, again.rows) == (True, first.snapshot_id, None)
    assert keys(table) == [3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 11, 12]
    with pytest.raises(
        lake.InvalidRequestError, match=r"as OVERWRITE \(UPDATE\); this commit is OVERWRITE"
    ):
        table.delete("k = 3", commit=commit)


def test_a_queue_keeps_its_order_where_files_are_written_again():
    table = three_files(QUEUE)
    table.delete("k IN (1, 6, 9)")
    found = table.scan(columns=["k"]).to_arrow()["k"].to_pylist()
    assert found == [0, 2, 3, 4, 5, 7, 8, 10, 11]
    add(table, [12])
    assert table.scan(columns=["k"]).to_arrow()["k"].to_pylist() == [*found, 12]


@pytest.mark.parametrize("options", [{}, MARKED], ids=["copy", "marks"])
def test_a_condition_on_partitions_alone_reads_no_data(options):
    table = new_table(options, partition_by=["p"])
    for p in "abc":
        add(table, range(3), p)
    handle = table._handle
    [path] = [path for path in handle.storage.files(handle.layout.root) if "/p=b/" in path]
    handle.storage.overwrite(path, b"nobody reads this")
    report = table.delete("p IN ('b', 'd')")
    assert (report.rows, report.files_removed, report.files_read) == (3, 1, 1)
    assert table.scan(columns=["p"]).to_arrow()["p"].to_pylist() == ["a"] * 3 + ["c"] * 3


@pytest.mark.parametrize("options", [{}, MARKED], ids=["copy", "marks"])
def test_a_row_whose_partition_is_changed_moves_there(options):
    table = new_table(options, partition_by=["p"])
    add(table, range(3), "a")
    table.update("k = 1", {"p": "b"})
    assert table.scan(where="p = 'b'", columns=["k"]).to_arrow()["k"].to_pylist() == [1]
    assert keys(table) == [0, 1, 2]


def test_new_values_are_computed_from_the_rows_as_they_were():
    table = new_table({}, more="STRING")
    add(table, range(3))
    table.update(
        None,
        {
            "v": lambda rows: pc.binary_join_element_wise(rows["v"], rows["k"].cast("string"), "-"),
            "more": lambda rows: rows["v"],
        },
    )
    found = table.scan(columns=["k", "v", "more"]).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [(n, f"old-{n}", "old") for n in range(3)]


def test_a_null_that_was_there_gets_no_default_by_an_update_of_another_column(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", [("k", "INT"), ("v", "STRING")])
    table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["x", "y"]}))
    catalog.alter_table("shop.t", lake.add_column("n", "STRING"))
    table = catalog.table("shop.t")
    table.update("k = 1", {"v": "z"})
    found = table.scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(1, "z", None), (2, "y", None)]


def test_a_column_that_others_added_meanwhile_is_kept(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    opened_before = catalog.create_table("shop.t", [("k", "INT"), ("v", "STRING")])
    catalog.alter_table("shop.t", lake.add_column("n", "INT"))
    later = catalog.table("shop.t")
    ints = pa.array([1, 2], pa.int32())
    later.write(pa.table({"k": ints, "v": ["x", "y"], "n": ints}))
    opened_before.delete("k = 1")
    assert later.scan().to_arrow().to_pylist() == [{"k": 2, "v": "y", "n": 2}]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (None, "set must map columns to values"),
        ({}, "set must map columns to values"),
        ({"unknown": 1}, "the columns are p, k, v"),
        ({"k": 2**31}, "not a value of column 'k', which is INT"),
        ({"k": 1.5}, "not a value of column 'k'.* write a whole number"),
        ({"k": lambda rows: pa.array([1])}, "4 rows and returned 1 value:"),
        ({"k": lambda rows: 7}, "returned 7: return an Arrow array"),
        ({"k": lambda rows: rows["v"]}, "column 'k' has type string, but the table needs int32"),
    ],
)
def test_a_new_value_that_does_not_fit_is_refused_and_nothing_is_left(values, said):
    table = three_files({})
    before = table._handle.storage.files(table._handle.layout.root)
    with pytest.raises(lake.InvalidRequestError, match=said):
        table.update("k < 4", values)
    assert table._handle.storage.files(table._handle.layout.root) == before


def test_a_null_is_refused_where_a_column_must_have_a_value():
    table = new_table({}, must="INT NOT NULL")
    one = pa.array([1], pa.int32())
    table.write(pa.table({"p": ["a"], "k": one, "v": ["x"], "must": one}))
    with pytest.raises(lake.InvalidRequestError, match="'must'"):
        table.update("k = 1", {"must": None})
    assert table.update("k = 1", {"v": None}).rows == 1


def test_a_variant_column_can_be_set_to_null():
    table = new_table({}, note="VARIANT")
    note = table.scan().schema.field("note").type
    row = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    table.write(
        pa.table(
            {
                "p": ["a"],
                "k": pa.array([1], pa.int32()),
                "v": ["x"],
                "note": pa.array([row], note),
            }
        )
    )
    assert table.update("k = 1", {"note": None}).rows == 1
    assert table.scan(columns=["note"]).to_arrow().column("note").null_count == 1


def test_what_computes_a_value_and_fails_leaves_nothing():
    table = three_files({})
    before = table._handle.storage.files(table._handle.layout.root)
    with pytest.raises(ZeroDivisionError):
        table.update(None, {"k": lambda rows: 1 / 0})
    assert table._handle.storage.files(table._handle.layout.root) == before


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"commit": "nightly"}, "commit must be a CommitId .*, got 'nightly'"),
        ({"on_progress": 5}, "on_progress must be a function of one argument, got 5"),
    ],
)
def test_arguments_nobody_can_mean_are_refused(how, said):
    with pytest.raises(lake.InvalidRequestError, match=said):
        three_files({}).delete("k = 1", **how)


def test_deleting_all_rows_has_a_call_of_its_own():
    with pytest.raises(lake.InvalidRequestError, match=r"use truncate\(\) to delete all rows"):
        three_files({}).delete(None)


def test_rows_that_are_numbered_are_not_changed():
    table = new_table({"row-tracking.enabled": "true"})
    with pytest.raises(lake.UnsupportedError, match="would lose: DELETE its rows"):
        table.delete("k = 1")


def test_metadata_is_not_changed_by_row():
    shown = three_files({}).system_table("files")
    with pytest.raises(lake.LakeError):
        shown.delete("level = 0")
    with pytest.raises(lake.LakeError):
        shown.update(None, {"level": 1})


def test_who_is_interested_hears_how_far_it_has_come():
    heard = []
    table = new_table({}, partition_by=["p"])
    for p in "abc":
        add(table, range(3), p)
    table.delete("k = 1", on_progress=heard.append)
    assert [(each.done, each.units) for each in heard] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert heard[-1].bytes_done == heard[-1].bytes > 0
