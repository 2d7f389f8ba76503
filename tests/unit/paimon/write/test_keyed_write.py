"""Writing tables with a primary key: the row of a key is replaced, deleted, or put in again."""

from __future__ import annotations

import decimal

import numpy
import pyarrow as pa
import pytest

import lakeformat as lake

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]


def keyed(catalog, columns=COLUMNS, primary_key=("id",), partition_by=(), **options) -> lake.Table:
    named = {key.replace("_", "-"): value for key, value in {"bucket": "1", **options}.items()}
    return catalog.create_table(
        "shop.orders", columns, primary_key=primary_key, partition_by=partition_by, options=named
    )


def rows(*values, names=("id", "note")) -> pa.Table:
    columns = list(zip(*values, strict=True))
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


def content(table: lake.Table) -> list[tuple]:
    found = table.scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def files(table: lake.Table, *columns: str) -> list[tuple]:
    found = table.system_table("files").scan(list(columns)).to_arrow().to_pylist()
    return [tuple(row.values()) for row in found]


def stored(tmp_path, pattern: str) -> list[dict]:
    """The rows of a file as they lie there."""
    import pyarrow.parquet as pq

    [path] = tmp_path.rglob(pattern)
    return pq.read_table(path).to_pylist()


def test_the_row_of_a_key_is_replaced_by_a_later_one(catalog):
    table = keyed(catalog)
    table.write(rows((1, "a"), (2, "b"), (1, "c")))
    table.write(rows((2, "d"), (3, "e")))
    assert content(table) == [(1, "c"), (2, "d"), (3, "e")]


@pytest.mark.parametrize(
    "kinds",
    [
        ["+I", "-D"],
        iter(["+I", "-D"]),
        [0, 3],
        numpy.array([0, 3], numpy.int8),
        pa.array(["+I", "-D"]),
        pa.chunked_array([["+I"], ["-D"]]),
        pa.array(["+I", "-D"]).dictionary_encode(),
    ],
    ids=lambda kinds: type(kinds).__name__,
)
def test_kinds_say_what_each_row_does_to_its_key(catalog, kinds):
    table = keyed(catalog)
    table.write(rows((1, "a"), (2, "b")))
    table.write(rows((3, "c"), (1, "a")), kinds)
    assert content(table) == [(2, "b"), (3, "c")]


def test_kinds_follow_their_rows_from_batch_to_batch(catalog):
    table = keyed(catalog)
    batches = [rows((n, "x")) for n in range(4)]
    table.write(batches, ["+I", "-D", "+U", "-U"])
    assert content(table) == [(0, "x"), (2, "x")]


def test_kinds_may_be_a_column_that_is_not_stored(catalog):
    table = keyed(catalog)
    table.write(rows((1, "a"), (2, "b")))
    table.write(rows((1, "a", "-D"), (3, "c", "+I"), names=("id", "note", "op")), "op")
    assert content(table) == [(2, "b"), (3, "c")]
    assert table.scan().schema.names == ["id", "note"]


def test_kinds_may_be_a_column_of_the_table(catalog):
    table = keyed(catalog)
    table.write(rows((1, "+I"), (2, "-D")), "note")
    assert content(table) == [(1, "+I")]


def test_a_column_of_the_table_says_kinds_where_an_option_names_it(catalog):
    table = keyed(catalog, **{"rowkind.field": "note"})
    table.write(rows((1, "+I"), (2, "-D")))
    assert content(table) == [(1, "+I")]
    with pytest.raises(lake.InvalidRequestError, match=r"'rowkind.field'.*remove the argument"):
        table.write(rows((1, "+I")), ["+I"])


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        (
            ["+I", "upsert", "+I"],
            r"row 1 has 'upsert' in kinds, .* not a row kind.*\(rows count from 0\)",
        ),
        (["+I", None, "+I"], "row 1 has None in kinds"),
        ([0, 1, 4], "row 2 has 4 in kinds"),
        ([0.5, 1.0, 2.0], "kinds has type double"),
        (["+I", 1, 2], "kinds must be '\\+I'"),
        (["+I"] * 2, "kinds has 2 values, but there are more rows"),
        (["+I"] * 4, "kinds has 4 values for 3 rows"),
        (
            "op",
            "kinds is 'op', but the rows have no columns of that name; their columns are id, note",
        ),
        ("+I", r"kinds is '\+I', but the rows have no .*pass one kind per row"),
        (7, "one kind per row"),
        ("note", "row 0 has 'a' in column 'note'"),
    ],
    ids=repr,
)
def test_kinds_nobody_understands_are_refused_and_nothing_is_written(
    catalog, tmp_path, kinds, reason
):
    table = keyed(catalog)
    with pytest.raises(lake.InvalidRequestError, match=reason):
        table.write(rows((1, "a"), (2, "b"), (3, "c")), kinds)
    assert table.latest_snapshot() is None
    assert list(tmp_path.rglob("*.parquet")) == []


def test_kinds_without_an_order_are_refused(catalog):
    with pytest.raises(lake.InvalidRequestError, match="kinds must be a column name, or"):
        keyed(catalog).write(rows((1, "a"), (2, "b")), {"+I", "-D"})


def test_a_message_shows_the_beginning_of_many_kinds(catalog):
    with pytest.raises(lake.InvalidRequestError, match=r"got \['\+I', 1, .{80,90}…$"):
        keyed(catalog).write(rows((1, "a"), (2, "b")), ["+I", 1] * 1000)


def test_a_kind_column_is_not_offered_numbers(catalog):
    table = keyed(catalog, **{"rowkind.field": "note"})
    with pytest.raises(
        lake.InvalidRequestError, match=r"'note', .* '\+U' or '-D' \(rows count from 0\)$"
    ):
        table.write(rows((1, "a")))


@pytest.mark.parametrize("value", [None, "x"])
def test_a_kind_column_without_a_kind_is_refused_by_row(catalog, value):
    table = keyed(catalog, **{"rowkind.field": "note"})
    with pytest.raises(lake.InvalidRequestError, match=f"row 1 has {value!r} in column 'note'"):
        table.write(rows((1, "+I"), (2, value)))


@pytest.mark.parametrize(
    ("option", "numbers"), [("ignore-delete", (0, 0)), ("ignore-update-before", (0, 1))]
)
def test_ignored_rows_get_no_sequence_number(catalog, option, numbers):
    table = keyed(catalog, **{option: "true"})
    table.write(rows((2, "x"), (1, "y"), (3, "c")), ["-U", "-D", "+I"])
    assert files(table, "min_sequence_number", "max_sequence_number") == [numbers]


def test_an_ignored_delete_leaves_the_row_of_its_key(catalog):
    table = keyed(catalog, ignore_delete="true")
    table.write(rows((1, "a"), (2, "b")))
    table.write(rows((1, "a"), (2, "b")), ["-D", "-U"])
    assert content(table) == [(1, "a"), (2, "b")]


def test_sequence_numbers_go_on_behind_the_files_of_their_bucket(catalog):
    table = keyed(catalog, bucket="2")
    table.write(rows(*((n, "a") for n in range(10))))
    table.write(rows(*((n, "b") for n in range(10))))
    by_bucket: dict[int, list] = {}
    for bucket, *numbers in files(table, "bucket", "min_sequence_number", "max_sequence_number"):
        by_bucket.setdefault(bucket, []).append(tuple(numbers))
    assert len(by_bucket) == 2
    for first, second in by_bucket.values():
        assert first[0] == 0
        assert second == (first[1] + 1, 2 * first[1] + 1)


def test_every_row_takes_a_number_even_one_that_is_merged_away(catalog, tmp_path):
    table = keyed(catalog)
    table.write(rows((1, "a"), (2, "b"), (1, "c")))
    assert [(row["id"], row["_SEQUENCE_NUMBER"]) for row in stored(tmp_path, "data-*")] == [
        (1, 2),
        (2, 1),
    ]


def test_files_say_their_level_their_deletes_and_their_keys(catalog):
    table = keyed(catalog)
    table.write(rows((5, "a"), (2, "b"), (9, "c")), ["+I", "-D", "-U"])
    columns = ("level", "record_count", "deleteRowCount", "file_source", "min_key", "max_key")
    assert files(table, *columns) == [(0, 3, 2, "APPEND", "[2]", "[9]")]


def test_a_retract_that_is_alone_is_kept_with_its_kind(catalog, tmp_path):
    table = keyed(catalog)
    table.write(rows((1, "a"), (2, "b")), ["-D", "-U"])
    assert [row["_VALUE_KIND"] for row in stored(tmp_path, "data-*")] == [3, 1]
    assert content(table) == []


def test_a_user_sequence_decides_which_row_is_newer(catalog):
    table = keyed(catalog, [("id", "INT"), ("at", "INT")], **{"sequence.field": "at"})
    table.write(rows((1, 5), (1, 9), (1, None), (2, 1), names=("id", "at")))
    table.write(rows((1, 7), (2, 1), names=("id", "at")))
    assert content(table) == [(1, 9), (2, 1)]


def test_an_input_changelog_keeps_every_row_in_key_order(catalog, tmp_path):
    table = keyed(catalog, changelog_producer="input")
    table.write(rows((2, "a"), (1, "b"), (2, "c"), (1, "d")), ["+I", "+I", "+U", "-D"])
    kept = stored(tmp_path, "changelog-*")
    assert [(row["id"], row["note"], row["_VALUE_KIND"]) for row in kept] == [
        (1, "b", 0),
        (1, "d", 3),
        (2, "a", 0),
        (2, "c", 2),
    ]
    snapshot = table.latest_snapshot()
    assert (snapshot.changelog_record_count, snapshot.total_record_count) == (4, 2)


def test_an_overwrite_has_no_changelog(catalog, tmp_path):
    table = keyed(catalog, changelog_producer="input")
    table.write(rows((1, "a")), overwrite={})
    assert list(tmp_path.rglob("changelog-*")) == []
    assert content(table) == [(1, "a")]


def test_a_run_becomes_several_files_at_the_target_size(catalog):
    table = keyed(catalog, **{"target-file-size": "1 mb", "file.compression": "none"})
    numbers = numpy.random.default_rng(1).permutation(400_000)
    report = table.write(pa.table({"id": numbers, "note": pa.nulls(len(numbers), pa.string())}))
    assert report.files > 1
    ranges = sorted(files(table, "min_sequence_number", "record_count"))
    assert sum(count for _, count in ranges) == 400_000
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(400_000))


def test_text_that_repeats_itself_is_stored_as_it_was(catalog, tmp_path):
    import pyarrow.parquet as pq

    columns = [("id", "BIGINT"), ("note", "STRING"), ("more", "STRING NOT NULL")]
    table = keyed(catalog, columns, ("more", "id"))
    count = 300_000
    ids = numpy.random.default_rng(4).permutation(count)
    notes = [["paid", None, "", "packed"][n % 4] for n in range(count)]
    given = pa.table({"id": ids, "note": notes, "more": ["a"] * (count - 1) + ["b"]})
    table.write(given)
    assert (
        table.scan().to_arrow().sort_by("id").equals(given.sort_by("id").cast(table.scan().schema))
    )
    [path] = tmp_path.rglob("data-*.parquet")
    assert pq.read_schema(path).field("note").type == pa.string()
    statistics = table.system_table("files").scan(["min_value_stats", "max_value_stats"])
    [bounds] = statistics.to_arrow().to_pylist()
    assert "more=a" in bounds["min_value_stats"]
    assert "note=paid" in bounds["max_value_stats"]
    assert "more=b" in bounds["max_value_stats"]


def test_keys_of_every_kind_keep_one_row_each(catalog):
    columns = [("t", "STRING"), ("d", "DECIMAL(20, 2)"), ("f", "DOUBLE"), ("v", "INT")]
    table = keyed(catalog, columns, primary_key=("t", "d", "f"), bucket="3")
    keys = [(t, decimal.Decimal(d), f) for t in ("", "a", "ab") for d in (-1, 7) for f in (-0.0, 1)]
    values = [(*key, n) for n, key in enumerate(keys * 2)]
    table.write(
        pa.Table.from_arrays(
            [
                pa.array(column, kind.type)
                for column, kind in zip(
                    zip(*values, strict=True), table.schema.arrow_schema(), strict=True
                )
            ],
            schema=table.schema.arrow_schema(),
        )
    )
    assert {row[:3]: row[3] for row in content(table)} == {row[:3]: row[3] for row in values}


PARTITIONED = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]
NAMES = ("dt", "id", "note")


@pytest.fixture
def by_day(catalog) -> lake.Table:
    table = keyed(catalog, PARTITIONED, ("dt", "id"), ("dt",), bucket="2")
    table.write(rows(("mon", 1, "a"), ("tue", 1, "b"), ("mon", 2, "c"), names=NAMES))
    return table


def test_a_key_is_one_row_in_each_partition(by_day):
    by_day.write(rows(("tue", 1, "new"), ("wed", 1, "d"), names=NAMES))
    assert content(by_day) == [
        ("mon", 1, "a"),
        ("mon", 2, "c"),
        ("tue", 1, "new"),
        ("wed", 1, "d"),
    ]


def test_an_overwrite_replaces_the_partitions_it_names(by_day):
    by_day.write(rows(("mon", 9, "new"), names=NAMES), overwrite={"dt": "mon"})
    assert content(by_day) == [("mon", 9, "new"), ("tue", 1, "b")]


def test_a_dynamic_overwrite_replaces_the_partitions_that_get_rows(by_day):
    by_day.write(rows(("tue", 9, "new"), ("wed", 1, "d"), names=NAMES), overwrite="dynamic")
    assert content(by_day) == [
        ("mon", 1, "a"),
        ("mon", 2, "c"),
        ("tue", 9, "new"),
        ("wed", 1, "d"),
    ]


def test_an_overwrite_of_everything_leaves_only_what_it_brings(by_day):
    by_day.write(rows(("wed", 1, "d"), names=NAMES), overwrite={})
    assert content(by_day) == [("wed", 1, "d")]


def test_an_overwrite_starts_its_numbers_anew_on_the_highest_level(by_day):
    by_day.write(rows(("mon", 1, "x"), ("mon", 1, "y"), names=NAMES), overwrite={})
    columns = ("level", "min_sequence_number", "max_sequence_number", "record_count")
    assert files(by_day, *columns) == [(5, 1, 1, 1)]


def test_rows_outside_the_overwritten_partition_are_refused_by_row(by_day, tmp_path):
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(lake.InvalidRequestError, match="row 1 is in partition dt=tue, which this"):
        by_day.write(rows(("mon", 1, "x"), ("tue", 1, "y"), names=NAMES), overwrite={"dt": "mon"})
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert by_day.latest_snapshot().id == 1


def test_a_row_is_named_by_its_number_among_those_given_not_those_kept(catalog):
    table = keyed(catalog, PARTITIONED, ("dt", "id"), ("dt",), ignore_delete="true")
    given = rows(("mon", 1, "x"), ("tue", 1, "y"), ("tue", 2, "z"), names=NAMES)
    with pytest.raises(lake.InvalidRequestError, match="row 2 is in partition dt=tue"):
        table.write(given, ["+I", "-D", "+I"], overwrite={"dt": "mon"})


def test_writers_in_other_processes_may_prepare_an_overwrite(by_day):
    with by_day.new_writer(overwrite={"dt": "mon"}) as writer:
        writer.write(rows(("mon", 9, "new"), names=NAMES))
        sent = [message.to_bytes() for message in writer.prepare()]
    by_day.commit([lake.CommitMessage.from_bytes(each) for each in sent], overwrite={"dt": "mon"})
    assert content(by_day) == [("mon", 9, "new"), ("tue", 1, "b")]


def test_rows_cannot_be_added_under_another_number_of_buckets(catalog, by_day, tmp_path):
    catalog.alter_table("shop.orders", lake.set_option("bucket", "4"))
    table = catalog.table("shop.orders")
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(
        lake.InvalidRequestError, match=r"dt=mon of .* has 2 buckets, but option 'bucket' is '4'"
    ):
        table.write(rows(("mon", 1, "x"), names=NAMES))
    assert sorted(tmp_path.rglob("*.parquet")) == before
    table.write(rows(("wed", 1, "d"), names=NAMES))
    table.write(rows(("mon", 1, "x"), names=NAMES), overwrite={"dt": "mon"})
    assert content(table) == [("mon", 1, "x"), ("tue", 1, "b"), ("wed", 1, "d")]


REFUSED = {
    "a null in the key": (
        {"id": pa.array([1, None]), "price": [1, 1]},
        r"'id' is NOT NULL, but is null in 1 of 2 .*; the first .*in row 1 \(rows count from 0\)",
    ),
    "no key": ({"price": [1]}, "'id' is NOT NULL, but the rows from row 0 on do not have"),
    "a number too large": (
        {"id": [1, 2, 3], "price": [1, 2, 1000]},
        "'price' does not fit .*; the first .*in row 2",
    ),
    "text for a number": ({"id": ["1"]}, "'id' has type string, but the table needs int64"),
    "a column too many": ({"id": [1], "nope": [2]}, "the table has no column 'nope'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_do_not_fit_are_refused_by_column_and_row(catalog, tmp_path, case):
    columns, reason = REFUSED[case]
    table = keyed(catalog, [("id", "BIGINT"), ("price", "DECIMAL(3, 1)")])
    with pytest.raises(lake.InvalidRequestError, match=reason):
        table.write(pa.table(columns))
    assert table.latest_snapshot() is None
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_row_is_counted_over_all_batches(catalog):
    good, bad = rows((1, "a"), (2, "b")), rows((3, "c"), (None, "d"))
    with pytest.raises(
        lake.InvalidRequestError, match=r"the first .*in row 3 \(rows count from 0\)$"
    ):
        keyed(catalog).write([good, bad])


def test_a_refused_batch_ends_the_writer_and_leaves_nothing(catalog, tmp_path):
    writer = keyed(catalog).new_writer()
    writer.write(rows((1, "a")))
    with pytest.raises(lake.InvalidRequestError, match="no column 'x'"):
        writer.write(pa.table({"x": [1]}))
    with pytest.raises(lake.InvalidRequestError, match="this writer is finished"):
        writer.prepare()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_default_takes_the_place_of_what_a_row_lacks(catalog):
    table = keyed(catalog)
    catalog.alter_table("shop.orders", lake.add_column("state", "STRING"))
    assert table.scan().count() == 0
    catalog.table("shop.orders").write(rows((1, "a")))
    assert content(catalog.table("shop.orders")) == [(1, "a", None)]


def test_the_same_commit_twice_publishes_once(catalog, tmp_path):
    table = keyed(catalog)
    identity = lake.CommitId("run", 1)
    table.write(rows((1, "a")), commit=identity)
    before = sorted(tmp_path.rglob("*.parquet"))
    assert table.write(rows((1, "b")), commit=identity).replayed
    assert content(table) == [(1, "a")]
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_files_of_messages_that_are_given_up_are_removed(catalog, tmp_path):
    table = keyed(catalog, changelog_producer="input")
    writer = table.new_writer()
    writer.write(rows((1, "a")))
    messages = writer.prepare()
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    assert table.abort(messages) == []
    assert list(tmp_path.rglob("*.parquet")) == []
