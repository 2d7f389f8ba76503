"""DELETE and UPDATE of primary-key tables: the rows are found as a scan sees them, and written."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.row_changes import attempt
from tests.keyed_rows import KeyedRows, listed


def filled(options: dict[str, str] | None = None) -> KeyedRows:
    rows = KeyedRows(options)
    rows.commit(("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c"))
    rows.commit(("+U", 2, "B"), ("-D", 3, "c"), ("+I", 4, "d"))
    return rows


def test_rows_are_found_as_they_are_once_merged():
    table = filled().table
    assert table.delete("v = 'b'").rows == 0
    report = table.delete("v IN ('B', 'd')")
    assert (report.rows, report.method) == (2, "rows by key")
    assert listed(table.scan()) == [(1, "a")]


def test_a_row_is_updated_by_its_key():
    table = filled().table
    report = table.update("k >= 2", {"v": "new"})
    assert report.rows == 2
    assert sorted(listed(table.scan())) == [(1, "a"), (2, "new"), (4, "new")]
    changes = table.changes(report.snapshot_id - 1, report.snapshot_id).to_arrow()
    assert changes["rowkind"].to_pylist() == ["+U", "+U"]


def test_readers_of_an_input_changelog_hear_what_was():
    table = filled({"changelog-producer": "input"}).table
    number = table.update("k = 2", {"v": "new"}).snapshot_id
    assert listed(table.changes(number - 1, number)) == [("-U", 2, "B"), ("+U", 2, "new")]
    number = table.delete("k = 2").snapshot_id
    assert listed(table.changes(number - 1, number)) == [("-D", 2, "new")]


def test_rows_that_wait_for_a_compaction_are_changed_in_their_newest_version():
    rows = KeyedRows({"deletion-vectors.enabled": "true"})
    rows.commit(("+I", 1, "a"), ("+I", 2, "b"))
    rows.table.compact()
    rows.commit(("+U", 1, "newer"))
    assert rows.table.update("v = 'newer'", {"v": "newest"}).rows == 1
    rows.table.compact()
    assert sorted(listed(rows.table.scan())) == [(1, "newest"), (2, "b")]


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_postponed_rows_are_changed_in_their_newest_version(vectors):
    rows = KeyedRows({"bucket": "-2", "deletion-vectors.enabled": vectors})
    rows.commit(("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c"))
    rows.table.compact()
    rows.commit(("+U", 1, "older"), ("-D", 3, "c"))
    rows.commit(("+U", 1, "newer"), ("+I", 4, "d"), ("+I", 5, "e"))
    assert rows.table.delete("v = 'a' OR v = 'older' OR k = 3").rows == 0
    assert rows.table.update("k >= 3", {"v": "D"}, dry_run=True).rows == 2
    assert rows.table.update("k = 1 OR v = 'd'", {"v": "newest"}).rows == 2
    assert rows.table.delete("v IN ('b', 'e')").rows == 2
    rows.table.compact()
    assert sorted(listed(rows.table.scan())) == [(1, "newest"), (4, "newest")]


def test_a_row_that_is_postponed_during_a_delete_is_kept(monkeypatch):
    rows = KeyedRows({"bucket": "-2"})
    rows.commit(("+I", 1, "a"), ("+I", 2, "a"))
    rows.table.compact()
    search, late = attempt.find_keyed_rows, [("+U", 1, "new")]

    def then_write(*args):
        found = search(*args)
        found.splits()
        if late:
            rows.commit(late.pop())
        return found

    monkeypatch.setattr(attempt, "find_keyed_rows", then_write)
    report = rows.table.delete("v = 'a'")
    assert (report.rows, report.attempts) == (1, 2)
    rows.table.compact()
    assert listed(rows.table.scan()) == [(1, "new")]


def test_what_orders_rows_stays_in_force():
    rows = KeyedRows({"sequence.field": "v"})
    rows.commit(("+I", 1, "5"), ("+I", 2, "5"))
    assert rows.table.delete("k = 1").rows == 1
    rows.commit(("+I", 1, "4"))
    assert listed(rows.table.scan()) == [(2, "5")]
    with pytest.raises(
        lake.InvalidRequestError,
        match=r"'v' is in 'sequence\.field' and decides which row of a key is newer",
    ):
        rows.table.update("k = 2", {"v": "6"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"merge-engine": "first-row"}, "cannot delete rows"),
        ({"merge-engine": "aggregation"}, "aggregation.remove-record-on-delete"),
        ({"merge-engine": "partial-update"}, "partial-update.remove-record-on-delete"),
        ({"ignore-delete": "true"}, "ignores deletes"),
        ({"rowkind.field": "v"}, "column 'v' .'rowkind.field'. holds the kind of each row"),
    ],
)
def test_a_table_whose_rows_would_stay_is_refused(options, said):
    with pytest.raises(lake.InvalidRequestError, match=said):
        KeyedRows(options).table.delete("k = 1")


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_engines_that_remove_records_delete_rows(engine):
    options = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"}
    rows = KeyedRows(options)
    rows.commit(("+I", 1, "a"), ("+I", 2, "b"))
    assert rows.table.delete("k = 1").rows == 1
    assert listed(rows.table.scan()) == [(2, "b")]
    with pytest.raises(lake.InvalidRequestError, match="merges new values with earlier ones"):
        rows.table.update("k = 2", {"v": "c"})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("producer", ["none", "lookup", "full-compaction"])
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_a_row_written_after_its_deletion_has_no_values_of_the_deleted_row(
    engine, is_compacted, producer
):
    catalog = KeyedRows().catalog
    table = catalog.create_table(
        "shop.totals",
        [("k", "INT"), ("total", "BIGINT"), ("tags", "ARRAY<STRING>"), ("at", "INT")],
        primary_key=["k"],
        options={
            "bucket": "1",
            "merge-engine": engine,
            f"{engine}.remove-record-on-delete": "true",
            "sequence.field": "at",
            "changelog-producer": producer,
            "deletion-vectors.merge-on-read": "true",
        }
        | ({"fields.total.aggregate-function": "sum"} if engine == "aggregation" else {}),
    )
    table.write(pa.table({"k": [1, 2], "total": [3, 4], "tags": [["old"], ["b"]], "at": [1, 1]}))
    table.delete("k = 1")
    if is_compacted:
        table.compact()
    table.write(pa.table({"k": [1], "total": [5], "at": [2]}))
    table.compact()
    assert listed(table.scan()) == [(1, 5, None, 2), (2, 4, ["b"], 1)]


@pytest.mark.parametrize("function", ["first_value", "first_non_null_value"])
def test_a_delete_keeps_the_first_value_which_would_otherwise_be_null_for_good(function):
    catalog = KeyedRows().catalog
    table = catalog.create_table(
        "shop.firsts",
        [("k", "INT"), ("v", "INT")],
        primary_key=["k"],
        options={
            "bucket": "1",
            "merge-engine": "aggregation",
            "aggregation.remove-record-on-delete": "true",
            "fields.v.aggregate-function": function,
        },
    )
    table.write(pa.table({"k": [1], "v": [5]}))
    table.delete("k = 1")
    table.write(pa.table({"k": [1], "v": [3]}))
    table.compact()
    assert listed(table.scan()) == [(1, 5)]


@pytest.mark.parametrize("bucket", ["1", "-2"])
def test_rows_without_a_sequence_are_not_deleted_by_it(bucket):
    catalog = KeyedRows().catalog
    table = catalog.create_table(
        "shop.grouped",
        [("k", "INT"), ("v", "STRING"), ("g", "INT"), ("h", "INT"), ("other", "INT")],
        primary_key=["k"],
        options={
            "bucket": bucket,
            "merge-engine": "partial-update",
            "fields.g,h.sequence-group": "v",
            "fields.other.sequence-group": "other",
            "partial-update.remove-record-on-sequence-group": "h",
        },
    )
    table.write(pa.table({"k": [1, 2, 3], "g": [1, None, None], "other": [None, None, 1]}))
    table.write(pa.table({"k": [2], "h": [1]}))
    for dry_run in (True, False):
        with pytest.raises(
            lake.UnsupportedError,
            match=r"matches 1 row without a value in 'g' or 'h', .* Nothing was changed. Write",
        ):
            table.delete("k > 0", dry_run=dry_run)
    assert table.latest_snapshot().id == 2
    assert table.delete("k > 0 AND (g IS NOT NULL OR h IS NOT NULL)").rows == 2
    table.write(pa.table({"k": [3], "g": [1]}))
    assert table.delete("k > 0").rows == 1
    table.compact()
    assert listed(table.scan()) == []


def test_the_first_row_of_a_key_is_not_updated():
    table = KeyedRows({"merge-engine": "first-row"}).table
    with pytest.raises(lake.InvalidRequestError, match="keeps the first row of each key"):
        table.update("k = 1", {"v": "c"})


def test_a_key_is_not_updated():
    with pytest.raises(lake.InvalidRequestError, match="part of the primary key"):
        filled().table.update("k = 1", {"k": 7})


def test_a_dry_run_counts():
    table = filled().table
    report = table.delete("k < 4", dry_run=True)
    assert (report.rows, report.snapshot_id) == (2, None)
    assert table.latest_snapshot().id == 2


def test_the_same_commit_twice_changes_rows_once():
    table = filled().table
    commit = lake.CommitId("nightly", 1)
    first = table.delete("k = 1", commit=commit)
    again = table.delete("k = 2", commit=commit)
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert sorted(listed(table.scan())) == [(2, "B"), (4, "d")]
