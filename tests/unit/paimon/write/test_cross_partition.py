"""Keys that move between partitions: the row moves, is merged in place, or is dropped."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import BucketsChangedError, CorruptTableError
from lakeformat.paimon.commit.commit import commit_messages
from lakeformat.paimon.existing_keys import find_keys
from tests import sampling

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("kind", "INT"), ("note", "STRING")]
IGNORING = {"deduplicate.ignore-delete": "true"}
Row = tuple[str, int, int | None, str | None]


@pytest.fixture
def catalog() -> lake.Catalog:
    return new_catalog()


def new_catalog() -> lake.Catalog:
    catalog = lake.open_catalog(f"memory://{uuid4()}/")
    catalog.create_database("shop")
    return catalog


def crossing(catalog: lake.Catalog, engine: str = "deduplicate", **options: str) -> lake.Table:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    return catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["id"],
        partition_by=["dt"],
        options={"bucket": "-1", "merge-engine": engine, **named},
    )


def rows(*values: Row) -> pa.Table:
    columns = zip(*values, strict=True)
    types = [pa.string(), pa.int64(), pa.int32(), pa.string()]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in COLUMNS])


def content(table: lake.Table) -> list[Row]:
    found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    return sorted(found, key=lambda row: row[1])


def delta(table: lake.Table) -> list[tuple[Any, ...]]:
    latest = table.latest_snapshot()
    assert latest is not None
    found = table.changes(latest.id - 1, latest.id, "delta").to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_a_row_moves_and_leaves_a_deletion_with_its_own_values_behind(catalog):
    table = crossing(catalog)
    table.write(rows(("mon", 1, 1, "a"), ("mon", 2, 1, "b")))
    table.write(rows(("tue", 1, 2, "c")))
    assert content(table) == [("tue", 1, 2, "c"), ("mon", 2, 1, "b")]
    assert delta(table) == [("+I", "tue", 1, 2, "c"), ("-D", "mon", 1, 2, "c")]


def test_a_key_may_move_there_and_back_within_one_write(catalog):
    table = crossing(catalog, write_buffer_size="1 b")
    table.write(rows(("mon", 1, 1, "a")))
    table.write([rows(("tue", 1, 2, "b"), ("mon", 1, 3, "c")), rows(("wed", 1, 4, "d"))])
    assert content(table) == [("wed", 1, 4, "d")]
    table.write(rows(("tue", 1, 5, "e"), ("tue", 1, 6, "f")))
    assert content(table) == [("tue", 1, 6, "f")]


def test_a_delete_takes_the_row_out_of_whichever_partition_has_it(catalog):
    table = crossing(catalog)
    table.write(rows(("mon", 1, 1, "a"), ("tue", 2, 1, "b")))
    table.write(rows(("tue", 1, 1, "a")), ["-D"])
    assert content(table) == [("tue", 2, 1, "b")]
    table.write(rows(("wed", 1, 2, "new")))
    assert content(table) == [("wed", 1, 2, "new"), ("tue", 2, 1, "b")]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_engines_that_fold_rows_leave_the_key_where_it_is(catalog, engine):
    table = crossing(catalog, engine)
    table.write(rows(("mon", 1, 1, None), ("tue", 1, None, "x")))
    table.write(rows(("wed", 1, None, "b"), ("wed", 2, 5, "c")))
    assert content(table) == [("mon", 1, 1, "b"), ("wed", 2, 5, "c")]


SUMS = {"fields.default-aggregate-function": "sum"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("producer", ["none", "lookup", "full-compaction"])
@pytest.mark.parametrize(
    ("engine", "options", "kinds"),
    [
        ("aggregation", SUMS, ["+I", "+I"]),
        ("aggregation", {"fields.v.aggregate-function": "sum"}, ["+I", "-D"]),
        ("aggregation", {"fields.p.aggregate-function": "sum"}, ["+I", "+I"]),
        ("partial-update", {"fields.w.sequence-group": "p,v", **SUMS}, ["+I", "+I"]),
        ("partial-update", {"fields.w.sequence-group": "p,v"}, ["+I", "-D"]),
    ],
)
def test_partition_columns_are_never_aggregated(catalog, engine, options, kinds, producer):
    """Otherwise a row would show another partition than the one in which filters look for it."""
    table = catalog.create_table(
        "shop.t",
        [("p", "INT"), ("k", "INT NOT NULL"), ("w", "INT"), ("v", "INT")],
        primary_key=["k"],
        partition_by=["p"],
        options={"merge-engine": engine, "changelog-producer": producer, **options},
    )
    one = pa.array([1], pa.int32())
    for kind in kinds:
        table.write(pa.table({"p": one, "k": one, "w": one, "v": one}), [kind])
    for _ in range(2):
        assert table.scan().to_arrow()["p"].to_pylist() == [1]
        assert table.scan(where="p = 1").count() == table.scan(partitions={"p": 1}).count() == 1
        table.compact()
    changes = table.changes(0).to_arrow()
    assert changes["p"].unique().to_pylist() == [1]


def test_partition_columns_do_not_make_a_repeated_write_count_twice(catalog):
    columns = [("p", "INT"), ("k", "INT NOT NULL"), ("v", "INT")]
    table = catalog.create_table(
        "shop.t",
        columns,
        primary_key=["k"],
        partition_by=["p"],
        options={"merge-engine": "aggregation", "fields.p.aggregate-function": "sum"},
    )
    assert table.replaces_repeated_rows


def test_a_first_row_stays_whether_it_was_compacted_or_not(catalog):
    table = crossing(catalog, "first-row")
    table.write(rows(("mon", 1, 1, "a"), ("tue", 1, 2, "b")))
    table.write(rows(("tue", 1, 3, "c"), ("tue", 2, 1, "d")))
    table.compact()
    table.write(rows(("wed", 2, 1, "e"), ("wed", 3, 1, "f")))
    table.compact()
    assert content(table) == [("mon", 1, 1, "a"), ("tue", 2, 1, "d"), ("wed", 3, 1, "f")]


def test_rows_that_wait_for_a_compaction_are_known(catalog):
    table = crossing(catalog, **{"deletion-vectors.enabled": "true"})
    table.write(rows(("mon", 1, 1, "a")))
    table.write(rows(("tue", 1, 2, "b")))
    table.compact()
    table.write(rows(("wed", 1, 3, "c")))
    table.compact()
    assert content(table) == [("wed", 1, 3, "c")]


def test_buckets_fill_up_and_a_key_that_moves_makes_room(catalog):
    table = crossing(catalog, **{"dynamic-bucket.target-row-num": "2"})
    table.write(rows(*(("mon", n, 1, "a") for n in range(5))))
    table.write(rows(("tue", 0, 1, "b"), ("mon", 9, 1, "c")))
    found = table.system_table("files").scan(["partition", "bucket", "record_count"]).to_arrow()
    counts = sorted(tuple(row.values()) for row in found.to_pylist())
    assert counts[:3] == [("{mon}", 0, 1), ("{mon}", 0, 2), ("{mon}", 1, 2)]
    assert [row[:2] for row in counts if row[0] == "{tue}"] == [("{tue}", 0)]
    assert len(content(table)) == 6


def test_a_key_of_several_columns_may_have_some_of_the_partition_s(catalog):
    table = catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["note", "id"],
        partition_by=["dt", "note"],
        options={"bucket": "-1"},
    )
    table.write(rows(("mon", 1, 1, "a"), ("mon", 1, 2, "b")))
    table.write(rows(("tue", 1, 3, "a")))
    assert sorted(content(table)) == [("mon", 1, 2, "b"), ("tue", 1, 3, "a")]


def test_the_whole_table_can_be_overwritten_and_single_partitions_cannot(catalog):
    table = crossing(catalog)
    table.write(rows(("mon", 1, 1, "a"), ("tue", 2, 1, "b")))
    for where in ({"dt": "mon"}, "dynamic"):
        with pytest.raises(lake.UnsupportedError, match="could leave a key in two"):
            table.write(rows(("mon", 2, 1, "c")), overwrite=where)
    table.write(rows(("wed", 2, 1, "c"), ("mon", 2, 2, "d")), overwrite={})
    assert content(table) == [("mon", 2, 2, "d")]
    table.drop_partitions([{"dt": "mon"}])
    table.write(rows(("tue", 2, 3, "e")))
    assert content(table) == [("tue", 2, 3, "e")]


def test_a_number_of_buckets_is_refused(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    crossing(catalog)
    schema = tmp_path / "shop.db" / "orders" / "schema" / "schema-0"
    stored = json.loads(schema.read_text())
    schema.write_text(json.dumps(stored | {"options": stored["options"] | {"bucket": "4"}}))
    table = catalog.table("shop.orders")
    with pytest.raises(lake.UnsupportedError, match="that needs 'bucket' = '-1'"):
        table.write(rows(("mon", 1, 1, "a")))


def test_of_two_writers_the_later_one_is_refused_or_writes_again(catalog, monkeypatch):
    table = crossing(catalog)
    table.write(rows(("mon", 1, 1, "a")))
    late = table.new_writer()
    late.write(rows(("tue", 1, 2, "late")))
    messages = late.prepare()
    table.compact()
    rival = table.new_writer()
    rival.write(rows(("wed", 1, 3, "rival")))
    with pytest.raises(lake.InvalidRequestError, match="from 2 writers"):
        table.commit([*messages, *rival.prepare()])
    table.write(rows(("wed", 1, 3, "rival")))
    with pytest.raises(BucketsChangedError, match="keys may have moved"):
        table.commit(messages)
    met = []

    def commit_after_a_rival(handle, prepared, options, **how):
        if not met:
            met.append(True)
            table.write(rows(("thu", 1, 4, "faster")))
        return commit_messages(handle, prepared, options, **how)

    monkeypatch.setattr("lakeformat.paimon.table.writes.commit_messages", commit_after_a_rival)
    table.write(rows(("fri", 1, 5, "last")))
    assert content(table) == [("fri", 1, 5, "last")]


@pytest.mark.parametrize("is_staged", [False, True], ids=["commit", "publish"])
@pytest.mark.parametrize("rival", [False, True], ids=["cut", "cut and compacted"])
def test_messages_are_refused_after_a_rollback_of_the_snapshot_that_they_read(
    catalog, is_staged, rival
):
    table = crossing(catalog)
    for note in "ab":
        table.write(rows(("mon", 1, 1, note)))
    table.write(rows(("tue", 1, 1, "c")))
    with table.new_writer() as writer:
        writer.write(rows(("wed", 1, 2, "late")))
        messages = [lake.CommitMessage.from_bytes(each.to_bytes()) for each in writer.prepare()]
    address = table.staged.address(table.staged.add(messages).name)
    table.rollback(snapshot=2, as_latest=False)
    if rival:
        assert table.compact().snapshot_ids == (3,)
    with pytest.raises(BucketsChangedError, match="a rollback, which deleted snapshot 3"):
        table.staged.publish([address]) if is_staged else table.commit(messages)
    assert content(table) == [("mon", 1, 1, "b")]


def test_a_rollback_of_later_snapshots_does_no_harm(catalog):
    table = crossing(catalog)
    table.write(rows(("mon", 1, 1, "a")))
    with table.new_writer() as writer:
        writer.write(rows(("tue", 1, 2, "b")))
        messages = writer.prepare()
    table.write(rows(("wed", 1, 1, "c")))
    table.rollback(snapshot=1, as_latest=False)
    table.commit(messages)
    assert content(table) == [("tue", 1, 2, "b")]


def test_a_compaction_meanwhile_does_no_harm(catalog):
    table = crossing(catalog)
    for note in "ab":
        table.write(rows(("mon", 1, 1, note)))
    writer = table.new_writer()
    writer.write(rows(("tue", 1, 2, "c")))
    messages = writer.prepare()
    assert table.compact().snapshot_ids
    table.commit(messages)
    assert content(table) == [("tue", 1, 2, "c")]


def test_a_key_that_is_there_twice_already_is_said_to_be(catalog, monkeypatch):
    table = crossing(catalog)
    with monkeypatch.context() as patch:
        patch.setattr("lakeformat.paimon.existing_keys.find_keys", find_nothing)
        for day in ("mon", "tue"):
            table.write(rows((day, 1, 1, day)))
    with pytest.raises(CorruptTableError, match="in dt=mon and in dt=tue") as refused:
        table.write(rows(("wed", 1, 2, "c")))
    assert "Find the key with table.check(unique=[['id']])" in str(refused.value)
    [found] = table.check(unique=[["id"]]).failed
    assert found.examples == ("id=1",)


def find_nothing(handle: Any, snapshot: Any, keys: pa.Array) -> Any:
    """The result of a search that is skipped."""
    return find_keys(handle, None, keys)


def test_no_row_that_waits_stays_on_disk(catalog, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = crossing(catalog, write_buffer_size="1 b")
    table.write([rows(("mon", n, 1, "a")) for n in range(20)])
    with table.new_writer() as writer:
        writer.write([rows(("mon", n, 1, "a")) for n in range(20)])
        writer.abort()
    assert list(tmp_path.iterdir()) == []
    assert len(content(table)) == 20


DAYS = st.sampled_from(["mon", "tue", "wed"])
VALUES = st.tuples(DAYS, st.integers(0, 4), st.integers(0, 9), st.sampled_from("abc"))
CHANGES = st.lists(st.tuples(st.sampled_from(["+I", "+U", "-D"]), VALUES), min_size=1, max_size=8)


@settings(max_examples=sampling.count(5, whole=60))
@given(st.lists(CHANGES, min_size=1, max_size=5), st.booleans(), st.integers(1, 3))
def test_whatever_is_written_a_key_has_its_last_row_alone(commits, compacts, batch):
    table = crossing(new_catalog(), **{"dynamic-bucket.target-row-num": "2"})
    expected: dict[int, Row] = {}
    for changes in commits:
        kinds = [kind for kind, _ in changes]
        table.write(rows(*(row for _, row in changes)).to_batches(batch), kinds)
        for kind, row in changes:
            expected[row[1]] = row
            if kind == "-D":
                del expected[row[1]]
        if compacts:
            table.compact()
        assert content(table) == [expected[key] for key in sorted(expected)]


@settings(max_examples=sampling.count(5, whole=40))
@given(
    st.lists(st.lists(VALUES, min_size=1, max_size=8), min_size=1, max_size=4),
    st.sampled_from(["partial-update", "first-row"]),
    st.booleans(),
)
def test_whatever_is_written_a_key_stays_in_its_first_partition(commits, engine, compacts):
    table = crossing(new_catalog(), engine, **{"dynamic-bucket.target-row-num": "2"})
    expected: dict[int, Row] = {}
    for changes in commits:
        table.write(rows(*changes))
        for row in changes:
            if row[1] not in expected:
                expected[row[1]] = row
            elif engine == "partial-update":
                expected[row[1]] = (expected[row[1]][0], *row[1:])
        if compacts:
            table.compact()
    table.compact()
    assert content(table) == [expected[key] for key in sorted(expected)]


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_a_key_that_returns_to_a_partition_gets_its_old_bucket(catalog, producer):
    table = crossing(catalog, changelog_producer=producer, **{"dynamic-bucket.target-row-num": "2"})
    table.write(rows(*(("mon", n, 1, "a") for n in range(3))))
    assert buckets_of(table, 2) == {("mon", 1)}
    table.write(rows(("mon", 0, 1, "a")), ["-D"])
    table.write(rows(("tue", 2, 2, "b"), ("mon", 2, 3, "c")))
    assert buckets_of(table, 2) == {("mon", 1), ("tue", 0)}
    table.write([rows(("tue", 2, 4, "d")), rows(("mon", 2, 5, "e"))])
    assert buckets_of(table, 2) == {("mon", 1), ("tue", 0)}
    assert content(table) == [("mon", 1, 1, "a"), ("mon", 2, 5, "e")]


def test_a_key_that_was_deleted_returns_to_the_bucket_of_its_deletion(catalog):
    table = crossing(catalog, changelog_producer="lookup", **{"dynamic-bucket.target-row-num": "2"})
    table.write(rows(*(("mon", n, 1, "a") for n in range(3))))
    table.compact()
    table.write(rows(("mon", 0, 2, "a"), ("mon", 2, 2, "a")), ["-D", "-D"])
    table.write(rows(("mon", 2, 3, "b")))
    table.compact(buckets=[0])
    table.compact(buckets=[1])
    found = table.changes(2, table.latest_snapshot().id, "changelog").to_arrow().to_pylist()
    changes = [tuple(row.values()) for row in found if row["id"] == 2]
    assert changes == [("-U", "mon", 2, 1, "a"), ("+U", "mon", 2, 3, "b")]


def buckets_of(table: lake.Table, key: int) -> set[tuple[str, int]]:
    """The partitions and buckets with a file in which the key may be."""
    files = table.system_table("files").scan().to_arrow().to_pylist()
    ranges = [(json.loads(each["min_key"])[0], json.loads(each["max_key"])[0]) for each in files]
    return {
        (each["partition"].strip("{}"), each["bucket"])
        for each, (least, most) in zip(files, ranges, strict=True)
        if least <= key <= most
    }


FEW = st.tuples(st.sampled_from(["mon", "tue"]), st.integers(0, 1), st.just(1), st.just("a"))
MOVES = st.lists(st.tuples(st.sampled_from(["+I", "+I", "-D"]), FEW), min_size=2, max_size=6)


@settings(max_examples=sampling.count(6, whole=100))
@given(
    st.lists(MOVES, min_size=3, max_size=6),
    st.sampled_from(["none", "input", "lookup", "full-compaction"]),
    st.lists(st.sampled_from([None, [0], [1]]), min_size=6, max_size=6),
    st.integers(1, 6),
)
def test_the_changes_in_their_order_lead_to_the_rows(commits, producer, compacted, batch):
    options = {"dynamic-bucket.target-row-num": "1", "changelog-producer": producer}
    table = crossing(new_catalog(), **options)
    for changes, buckets in zip(commits, compacted, strict=False):
        kinds = [kind for kind, _ in changes]
        table.write(rows(*(row for _, row in changes)).to_batches(batch), kinds)
        if buckets is not None:
            table.compact(buckets=buckets)
    table.compact()
    followed: dict[tuple[str, int], Row] = {}
    latest = table.latest_snapshot()
    assert latest is not None
    for change in table.changes(0, latest.id).to_arrow().to_pylist():
        kind, *row = change.values()
        followed.pop((row[0], row[1]), None)
        if kind in ("+I", "+U"):
            followed[row[0], row[1]] = (row[0], row[1], row[2], row[3])
    assert sorted(followed.values(), key=lambda row: row[1]) == content(table)


def test_rows_do_not_move_where_deletes_are_ignored(catalog):
    with pytest.raises(lake.InvalidRequestError, match="its key would appear twice; add 'dt'"):
        crossing(catalog, ignore_delete="true")
    table = crossing(catalog)
    with pytest.raises(lake.InvalidRequestError, match="its key would appear twice"):
        catalog.alter_table("shop.orders", lake.set_option("ignore-delete", "true"))
    table.write(rows(("mon", 1, 0, "a")))
    of_another_writer = replace(table.schema, options={**table.schema.options, **IGNORING})
    handle = replace(table._handle, schema=of_another_writer)
    with pytest.raises(lake.UnsupportedError, match="its key would appear twice"):
        lake.Table(handle).write(rows(("tue", 1, 0, "b")))
    older = {**table.schema.options, "deduplicate.ignore-delete": "true"}
    handle = replace(table._handle, schema=replace(table.schema, options=older))
    with pytest.raises(lake.UnsupportedError, match=r"sets 'deduplicate\.ignore-delete'"):
        lake.Table(handle).write(rows(("tue", 1, 0, "b")))
    assert content(table) == [("mon", 1, 0, "a")]


@pytest.mark.parametrize("engine", ["first-row", "partial-update", "aggregation"])
def test_where_rows_stay_in_their_partition_deletes_may_be_ignored(catalog, engine):
    table = crossing(catalog, engine, ignore_delete="true")
    table.write(rows(("mon", 1, None, "a")))
    table.write(rows(("tue", 1, None, "b")))
    table.compact()
    assert [dt for dt, *_ in content(table)] == ["mon"]
