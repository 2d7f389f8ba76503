"""Changes of an Iceberg table have each row that a commit added, removed or updated."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.iceberg import iceberg_table
from tests.golden.iceberg_orders import IcebergOrders
from tests.unit.iceberg.made_table import MadeTable

Change = tuple[Any, ...]


def opened(name: str, branch: str = "main") -> lake.IcebergTable:
    table = lake.open_table(iceberg_table(name).location, branch=branch)
    assert isinstance(table, lake.IcebergTable)
    return table


def rows_of(name: str, after: Any, upto: Any = None, **options: Any) -> list[Change]:
    """The changes, those of each commit sorted, with the kind of each first."""
    found = opened(name).changes(after, upto, **options).to_arrow()
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def commit(name: str, number: int, **options: Any) -> list[Change]:
    """The changes of one commit, by its number in the branch."""
    position = opened(name).snapshots()[number].position
    return rows_of(name, position.before, position, **options)


# Windows


def commits(*window: Any, **options: Any) -> list[int]:
    """The commits whose rows a window of appends has; every row is an insertion."""
    found = opened("six_commits").changes(*window, **options).to_arrow()
    assert found.column_names[0] == "rowkind"
    assert set(found["rowkind"].to_pylist()) <= {"+I"}
    return sorted(set(found["commit_no"].to_pylist()))


@pytest.mark.parametrize("mode", ["auto", "changelog", "diff", "appends"])
def test_a_window_has_the_rows_of_its_commits(mode):
    kept = opened("six_commits").snapshots()
    assert commits(0, mode=mode) == [0, 1, 2, 3, 4, 5]
    assert commits(kept[0].position, kept[2].position, mode=mode) == [1, 2]
    assert commits(str(kept[2].position), kept[4].snapshot_id, mode=mode) == [3, 4]
    assert commits(0, mode=mode, where="commit_no = 3", columns=["commit_no"]) == [3]


@pytest.mark.parametrize("window", [("bevor",), (0, "bevor")])
def test_an_unknown_tag_gets_the_nearest_one(tmp_path, window):
    table = lake.open_table(str(IcebergOrders(tmp_path).root))
    table.tags.create("before")
    with pytest.raises(
        lake.NotFoundError, match=r"no tag or branch 'bevor', .*'before', 'main'; did you mean 'be"
    ):
        table.changes(*window)


def test_a_window_that_ends_where_it_starts_has_no_rows():
    """Java refuses it; a reader that polls meets it whenever there is no new commit."""
    table = opened("six_commits")
    at = datetime.fromtimestamp(table.snapshots()[2].timestamp_ms / 1000, UTC)
    assert commits(table.position()) == commits(at, at) == []


def test_windows_of_time_next_to_each_other_have_each_commit_once():
    times = [
        datetime.fromtimestamp(each.timestamp_ms / 1000, UTC) + timedelta(milliseconds=1)
        for each in opened("six_commits").snapshots()
    ]
    assert commits(times[0], times[2]) == [1, 2]
    assert commits(times[2], times[4]) == [3, 4]


def test_a_start_that_has_expired_is_named_with_the_way_out():
    table = opened("expired")
    starts = (0, 12345, datetime(2000, 1, 1, tzinfo=UTC), "main/2", "main/9@1")
    for start in starts:
        with pytest.raises(
            lake.NotFoundError, match=r"[Rr]ead all rows with scan\(\), and then the changes"
        ):
            table.changes(start)
    with pytest.raises(lake.NotFoundError, match="has no snapshot 12345: it may have expired"):
        table.changes(12345, mode="diff")


def test_a_position_of_a_former_table_is_refused_while_the_new_one_is_empty(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), options={"format": "iceberg"})
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for position in ("main/2@12", "main/2"):
        with pytest.raises(lake.NotFoundError, match=r"the branch has no snapshots\. Read"):
            orders.changes(position)


def appended_after_the_expiry(tmp_path, operation: str) -> lake.IcebergTable:
    """A table that keeps one snapshot, whose parent has expired; it added the id 2."""
    made = MadeTable(tmp_path / "t", {(1, "id"): "long"})
    made.manifest(id_file(made, 1), number=1, added_snapshot_id=5)
    made.earlier(5)
    made.manifest(id_file(made, 2), number=9)
    table = made.commit(operation=operation)
    file = tmp_path / "t/metadata/v1.metadata.json"
    kept = json.loads(file.read_text())
    kept["snapshots"] = kept["snapshots"][1:]
    file.write_text(json.dumps(kept))
    return lake.open_table(table.location)


def id_file(made: MadeTable, value: int) -> dict[str, Any]:
    path = made.write(f"{value}.parquet", id=(1, pa.array([value])))
    return {"file_path": path, "record_count": 1}


@pytest.mark.parametrize("mode", ["auto", "appends"])
@pytest.mark.parametrize("start", [5, "main/1@5", "main/8"])
def test_an_append_is_read_after_the_snapshot_before_it_expired(tmp_path, start, mode):
    """So a reader who was up to date before an expiry misses nothing."""
    table = appended_after_the_expiry(tmp_path, "append")
    assert table.changes(start, mode=mode).to_arrow()["id"].to_pylist() == [2]
    table.consumers.set("job", after=table.position("main/8"))
    [delivered] = table.stream(consumer="job")
    assert delivered.to_arrow()["id"].to_pylist() == [2]


def test_deletes_are_not_known_after_the_snapshot_before_them_expired(tmp_path):
    table = appended_after_the_expiry(tmp_path, "overwrite")
    expected = r"\(its operation is 'overwrite'\), and the state before it has expired"
    with pytest.raises(lake.NotFoundError, match=expected):
        table.changes("main/8")
    table.consumers.set("job", next_snapshot=9)
    stream = table.stream(consumer="job")
    with pytest.raises(lake.NotFoundError, match=expected):
        stream.poll()
    assert stream.position == table.position("main/8")


# Kinds


def test_rows_that_a_rewrite_only_copied_are_not_changes():
    """Copy on write: the file of ids 1 and 2 was replaced to update the second."""
    assert commit("cow_dml", 1) == [("+I", 2, "B", 1), ("-D", 2, "b", 1)]


def test_rows_of_deletes_by_position_vector_and_value_are_deleted():
    for name in ("mor_position_deletes", "v3_deletion_vectors", "equality_deletes"):
        kinds = {row[0] for row in commit(name, 2)}
        assert kinds == {"-D"}, name


def test_a_row_that_was_deleted_before_is_not_deleted_again():
    """Equality deletes by a key also hit rows that earlier ones have deleted."""
    table = opened("equality_deletes")
    ids = [each.snapshot_id for each in table.snapshots()]
    deleted = [row for row in rows_of("equality_deletes", 0, ids[-1]) if row[0] == "-D"]
    assert len(deleted) == len(set(deleted))


def test_removed_and_added_rows_of_one_key_are_an_update():
    changes = commit("cow_dml", 1, keys=["id"])
    assert changes == [("+U", 2, "B", 1), ("-U", 2, "b", 1)]
    assert commit("cow_dml", 2, keys=["id"]) == [("-D", 3, "c", 2)]


def test_removed_rows_come_before_added_ones():
    table = opened("cow_dml")
    merge = table.snapshots()[4].position
    found = table.changes(merge.before, merge, keys=["id"]).to_arrow()
    assert found["rowkind"].to_pylist() == ["-U", "+U", "+I"]


def test_a_commit_that_only_moved_rows_has_no_changes():
    table = opened("rewritten")
    moved = [each.position for each in table.snapshots() if each.operation == "replace"]
    assert len(moved) == 2
    for position in moved:
        assert rows_of("rewritten", position.before, position) == []


def rows_file(made: MadeTable, name: str, *rows: tuple[int, str], **members: Any) -> dict[str, Any]:
    ids, values = (pa.array(each) for each in zip(*rows, strict=True))
    path = made.write(name, id=(1, ids), v=(2, values))
    return {"file_path": path, "record_count": len(rows)} | members


IDENTIFIED = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "v", "required": False, "type": "string"},
    ],
    "identifier-field-ids": [1],
}


@pytest.mark.parametrize("keys", [[], ["id"], None])
def test_a_row_that_an_upsert_writes_again_unchanged_is_not_a_change(tmp_path, keys):
    """As Flink writes: an equality delete of each key, and the new rows, in one commit.

    Unless keys are named, the identifier fields are the key.
    """
    made = MadeTable(tmp_path / "t", {(1, "id"): "long"}, schemas=[IDENTIFIED])
    made.manifest(rows_file(made, "a.parquet", (1, "a"), (2, "b"), (3, "c")), number=1)
    made.earlier(5)
    deletes = {"content": 2, "equality_ids": [1]}
    made.manifest(rows_file(made, "d.parquet", (1, ""), (2, ""), **deletes), number=9)
    made.manifest(rows_file(made, "b.parquet", (1, "a"), (2, "B")), number=9)
    found = made.commit(operation="overwrite").changes(5, keys=keys).to_arrow()
    kinds = ["-D", "+I"] if keys == [] else ["-U", "+U"]
    assert found["rowkind"].to_pylist() == kinds
    assert (found["id"].to_pylist(), found["v"].to_pylist()) == ([2, 2], ["b", "B"])


# Modes


def test_a_difference_has_only_the_last_image_of_a_row():
    every = rows_of("cow_dml", 0)
    assert ("-D", 3, "c2", 2) in every
    assert rows_of("cow_dml", 0, mode="diff") == [
        ("+I", 1, "A", 1),
        ("+I", 10, "x", 2),
        ("+I", 2, "B", 1),
    ]


def test_two_tags_are_compared_as_states():
    table = opened("branches_tags")
    names = [each.name for each in table.references.values() if each.type == "tag"]
    assert rows_of("branches_tags", names[0], names[0]) == []
    other = opened("branches_tags", "dev").latest_snapshot()
    assert other is not None
    compared = rows_of("branches_tags", "first", "dev")
    assert compared == rows_of("branches_tags", "first", other.snapshot_id, mode="diff")


def test_appends_alone_leave_out_other_commits():
    assert {row[0] for row in rows_of("cow_dml", 0, mode="appends")} == {"+I"}
    assert len(rows_of("cow_dml", 0, mode="appends")) == 5


def test_an_unknown_mode_is_named_with_those_that_exist():
    with pytest.raises(lake.InvalidRequestError, match=r"one of auto, changelog, diff, appends"):
        opened("cow_dml").changes(0, mode="delta")


# Columns and conditions


def test_a_row_counts_as_changed_if_a_column_that_is_not_read_changed():
    assert commit("cow_dml", 1, columns=["id"]) == [("+I", 2), ("-D", 2)]
    assert commit("cow_dml", 1, columns=["rowkind", "id"], keys=["id"]) == [("+U", 2), ("-U", 2)]


def test_conditions_may_use_columns_that_are_not_read_and_the_kind():
    assert rows_of("cow_dml", 0, columns=["id"], where="v = 'B'") == [("+I", 2)]
    gone = rows_of("cow_dml", 0, columns=["id"], where="rowkind = '-D' and p = 3")
    assert gone == [("-D", 4)]
    assert rows_of("cow_dml", 0, columns=["id"], where="rowkind = '-D' or id = 10") == sorted(
        (row[:2] for row in rows_of("cow_dml", 0) if row[0] == "-D" or row[1] == 10), key=repr
    )


@pytest.mark.parametrize("table_format", ["iceberg", "mixed"])
def test_a_column_with_the_name_of_the_kind_must_be_left_out(tmp_path, table_format):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    key = ["id"] if table_format == "mixed" else []
    columns = [("id", "BIGINT"), ("rowkind", "BIGINT")]
    table = catalog.create_table(
        "db.t", columns, format=table_format, primary_key=key, partition_by=["rowkind"]
    )
    begin = table.position()
    table.write(pa.table({"id": [1], "rowkind": [5]}))
    error = r"has a column 'rowkind', .*: rename the column of the table. Or read only o"
    for asked in (
        {},
        {"columns": ["rowkind"]},
        {"columns": ["id"], "where": "rowkind = '+I'"},
        {"columns": ["id"], "where": "id = 1 or rowkind = 5"},
        {"columns": ["id"], "partitions": {"rowkind": 5}},
    ):
        for call in (partial(table.changes, begin), table.stream):
            with pytest.raises(lake.InvalidRequestError, match=error):
                call(**asked)
    if table_format == "iceberg":
        with pytest.raises(lake.InvalidRequestError, match=error):
            table.changes(begin, mode="appends")
    found = table.changes(begin, columns=["id"], where="id > 0").to_arrow().to_pylist()
    assert found == [{"rowkind": "+U" if key else "+I", "id": 1}]
    assert table.scan(where="rowkind = 5").count() == 1
    catalog.alter_table("db.t", lake.rename_column("rowkind", "r"))
    found = catalog.table("db.t").changes(begin, columns=["r"]).to_arrow().to_pylist()
    assert [row["r"] for row in found] == [5]


def test_changes_may_have_the_lineage_of_rows():
    found = commit("v3_deletion_vectors", 2, columns=["_row_id"])
    assert all(isinstance(row[1], int) for row in found)


def test_unknown_keys_are_named():
    with pytest.raises(lake.InvalidRequestError, match=r"keys must name some of id, v, p.*'id'\?"):
        opened("cow_dml").changes(0, keys=["idd"])
