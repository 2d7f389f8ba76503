"""``format("lake")`` asked in this process as Spark asks it: options, plans, commits, offsets."""

import pickle
import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema

import lakeformat as lake
from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.lake_source import source_in
from tests.golden.iceberg import iceberg_table
from tests.spark.orders import data_files

COLUMNS = [("id", "BIGINT"), ("dt", "STRING"), ("note", "STRING")]


@pytest.fixture
def orders(catalog):
    made = catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "1"},
    )
    made.write(rows_of(range(20)))
    return made


@pytest.fixture
def events(catalog):
    return catalog.create_table("shop.events", COLUMNS)


@pytest.fixture
def source(catalog):
    """The data source of a session, with options: ``__`` stands for a hyphen, ``_`` for a dot."""

    def build(**options):
        place = Warehouse(catalog.location, {"table-default.bucket": "1"})
        kind = source_in(place, at_once=2)
        said = {name.replace("__", "-").replace("_", "."): text for name, text in options.items()}
        return kind({"path": "shop.orders", **said})

    return build


def rows_of(numbers, note="a"):
    count = len(numbers)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "dt": [f"p{number % 2}" for number in numbers],
            "note": [note] * count,
        }
    )


def all_rows(reader, partitions):
    """As tasks read them: the reader is sent there, as Spark sends it."""
    sent = pickle.loads(cloudpickle.dumps(reader))
    found = [batch for part in partitions for batch in sent.read(part)]
    return [row for batch in found for row in batch.to_pylist()]


def read(opened):
    reader = opened.reader(opened.schema())
    return all_rows(reader, reader.partitions())


def ids(rows):
    return sorted(row["id"] for row in rows)


def columns_of(table_rows):
    """Return options as Spark passes them to a writer."""
    return from_arrow_schema(table_rows.schema)


def write(source, table_rows, *, overwrite=False, **options):
    writer = source(**options).writer(columns_of(table_rows), overwrite)
    answers = [writer.write(iter(table_rows.to_batches()))]
    writer.commit(pickle.loads(pickle.dumps(answers)))


def test_columns_and_rows_are_left_out_before_they_are_read(source, orders):
    opened = source(columns="note, id", where="dt = 'p1'")

    assert opened.schema().fieldNames() == ["note", "id"]
    assert ids(read(opened)) == [*range(1, 20, 2)]


def test_a_source_shows_the_snapshot_of_when_it_was_loaded(source, orders):
    loaded = source()
    loaded.schema()
    orders.write(rows_of([99]))

    assert len(read(pickle.loads(cloudpickle.dumps(loaded)))) == 20
    assert len(read(source())) == 21
    assert len(read(source(scan_snapshot__id="1"))) == 20


def test_a_condition_prunes_what_is_planned(source, orders):
    def places(**options):
        planned = source(**options).reader(source().schema()).partitions()
        return {split.partition for part in planned for split in part.part}

    assert len(places()) == 2
    assert len(places(where="dt = 'p1'")) == 1


def test_no_filter_is_taken_from_spark_which_would_ask_others_with_it(source, orders):
    reader = type(source().reader(source().schema()))

    assert reader.pushFilters is DataSourceReader.pushFilters


def test_changes_have_a_kind_and_without_it_rows_that_go_are_left_out(source, orders):
    orders.write(rows_of([0, 1]), kinds=["-D", "+U"])

    changed = read(source(incremental__between="1,2"))
    assert [(row["rowkind"], row["id"]) for row in changed] == [("-D", 0), ("+U", 1)]
    assert ids(read(source(incremental__between="1,2", rowkind="false"))) == [1]


@pytest.mark.parametrize("mode", ["delta", "diff"])
def test_changes_are_parts_for_each_core_whatever_the_number_of_snapshots(source, orders, mode):
    """Many small files make one part; one snapshot, or one comparison, makes several."""
    asked = {"incremental__between__scan__mode": mode}
    orders.write(rows_of(range(20), "b"))
    one = source(incremental__between="1,2", **asked)
    for number in range(4):
        orders.write(rows_of([number, number + 1], "c"))
    several = source(incremental__between="1,6", **asked)

    assert {row["id"] for row in read(one)} == {row["id"] for row in read(several)} == {*range(20)}
    for opened in (one, several):
        assert len(opened.reader(opened.schema()).partitions()) == 2


def test_all_rows_are_inserted_where_a_kind_is_asked_for(source, orders):
    assert {row["rowkind"] for row in read(source(rowkind="true"))} == {"+I"}


def test_a_source_travels_by_every_name_of_a_snapshot(source, orders):
    orders.tags.create("first", snapshot=1)
    made = orders.latest_snapshot().time_millis
    time.sleep(0.01)
    orders.write(rows_of([99]), watermark=7_000)

    then = {
        "scan_snapshot__id": "1",
        "scan_tag__name": "first",
        "scan_timestamp__millis": str(made),
        "scan_timestamp": datetime.fromtimestamp(made / 1000, UTC).isoformat(),
    }
    for name, value in then.items():
        assert len(read(source(**{name: value}))) == 20, name
    assert len(read(source(scan_watermark="7000"))) == 21


@pytest.mark.parametrize("mode", ["auto", "delta", "diff"])
def test_changes_are_found_between_snapshots_tags_and_times(source, orders, mode):
    orders.tags.create("first", snapshot=1)
    began = orders.latest_snapshot().time_millis
    time.sleep(0.01)
    orders.write(rows_of([0], "b"))
    ended = orders.latest_snapshot().time_millis

    ends = {
        "incremental__between": ["1,2", "first,2"],
        "incremental__between__timestamp": [f"{began},{ended}"],
    }
    for name, texts in ends.items():
        for text in texts:
            asked = {name: text, "incremental__between__scan__mode": mode}
            came = [row for row in read(source(**asked)) if row["rowkind"] in ("+I", "+U")]
            assert [(row["id"], row["note"]) for row in came] == [(0, "b")], (name, text)


def test_a_column_says_what_written_rows_do(source, orders):
    told = rows_of([0, 1, 50], "b").append_column("does", pa.array(["-D", "+U", "+I"]))

    write(source, told, kinds="does")

    left = {row["id"]: row["note"] for row in read(source())}
    assert (len(left), 0 in left, left[1], left[50]) == (20, False, "b", "b")


def test_system_tables_are_read(source, orders):
    assert [row["snapshot_id"] for row in read(source(path="shop.orders$snapshots"))] == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"snapshot": "1"},
            r"no option 'snapshot': did you mean 'scan.snapshot-id'\? The options are ",
        ),
        (
            {"snapshot": "1"},
            r"The options are path, table, .*, scan\.mode, .*, query\. Give options of the cat",
        ),
        ({"s3_secret__key": "x"}, "to spark_jobs.session or spark_jobs.register"),
        ({"kinds": "k"}, "'kinds' is for a batch write or a stream write"),
        ({"scan_mode": "latest"}, "'scan.mode' is for a stream read"),
        ({"scan_snapshot__id": "one"}, "'scan.snapshot-id' must be a whole number, got 'one'"),
        ({"incremental__between": "3"}, "must be two ends separated by a comma"),
        ({"incremental__between__scan__mode": "diff"}, "needs option 'incremental-between'"),
        ({"rowkind": "yes"}, "'rowkind' must be true or false"),
        ({"table": "shop.orders"}, "given twice"),
    ],
)
def test_a_wrong_option_is_refused_with_what_there_is(source, orders, options, said):
    with pytest.raises(lake.InvalidRequestError, match=said):
        read(source(**options))


def test_no_value_of_the_catalogs_options_is_shown(source, orders):
    assert "table-default" not in repr(source().place)


def test_overwriting_replaces_all_a_partition_or_those_that_get_rows(source, orders):
    write(source, rows_of([1], "b"), overwrite=True, overwrite__mode="dynamic")
    assert ids(read(source())) == [0, 1, *range(2, 20, 2)]
    write(source, rows_of([3], "b"), overwrite=True, overwrite__partition="dt=p1")
    assert ids(read(source())) == [0, 2, 3, *range(4, 20, 2)]
    write(source, rows_of([5], "b"), overwrite=True)
    assert ids(read(source())) == [5]


def test_the_same_commit_twice_publishes_once(source, orders, warehouse):
    for _ in range(2):
        write(source, rows_of([1]), commit__user="run", commit__identifier="1")

    assert len(orders.snapshots()) == 2
    assert len(data_files(warehouse)) == 3


def test_rows_that_do_not_fit_are_refused_in_the_driver_and_abort_leaves_nothing(
    source, orders, warehouse
):
    writer = source().writer(columns_of(rows_of([])), False)
    good = writer.write(iter(rows_of([50]).to_batches()))
    wrong = writer.write(iter(pa.table({"id": [1], "extra": [2]}).to_batches()))

    with pytest.raises(lake.InvalidRequestError, match="no column 'extra'"):
        writer.commit([good, wrong])
    writer.abort([good, wrong, None])

    assert len(orders.snapshots()) == 1
    assert len(data_files(warehouse)) == 2


def test_files_of_a_commit_nobody_knows_the_outcome_of_stay(
    source, orders, warehouse, monkeypatch, tmp_path
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    writer = source().writer(columns_of(rows_of([])), False)
    answers = [writer.write(iter(rows_of([50]).to_batches()))]

    def lose(*args, **kwargs):
        raise lake.CommitOutcomeUnknownError("the answer was lost")

    monkeypatch.setattr(lake.Table, "commit", lose)
    with pytest.raises(lake.CommitOutcomeUnknownError):
        writer.commit(answers)
    pickle.loads(pickle.dumps(writer)).abort(answers)

    assert len(data_files(warehouse)) == 3


def stream(source, **options):
    opened = source(**{"path": "shop.events", **options})
    return opened.streamReader(opened.schema())


def test_a_stream_begins_with_all_rows_and_goes_on_with_what_follows(source, events):
    events.write(rows_of([1, 2]))
    reader = stream(source)
    start = reader.initialOffset()
    first = reader.latestOffset()
    events.write(rows_of([3]))
    again = stream(source)  # as after a restart, when Spark knows the offset
    second = again.latestOffset()

    assert ids(all_rows(reader, reader.partitions(start, first))) == [1, 2]
    assert ids(all_rows(again, again.partitions(first, second))) == [3]
    assert again.latestOffset() == second


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scan_mode": "latest"}, []),
        ({"scan_mode": "from-snapshot", "scan_snapshot__id": "2"}, [2, 3]),
        ({"scan_mode": "from-snapshot-full", "scan_snapshot__id": "2"}, [1, 2, 3]),
        ({"scan_mode": "from-timestamp", "scan_timestamp__millis": "0"}, [1, 2, 3]),
        ({"columns": "id", "where": "id > 1"}, [2, 3]),
    ],
)
def test_a_stream_begins_where_it_is_told(source, events, options, expected):
    for number in (1, 2, 3):
        events.write(rows_of([number]))
    reader = stream(source, **options)

    start = reader.initialOffset()

    assert ids(all_rows(reader, reader.partitions(start, reader.latestOffset()))) == expected


def test_a_batch_has_no_more_snapshots_than_asked_for(source, events):
    for number in range(5):
        events.write(rows_of([number]))
    where = {"scan_mode": "from-snapshot", "scan_snapshot__id": "1"}
    reader = stream(source, max__snapshots__per__batch="2", **where)
    start, batches = reader.initialOffset(), []
    while (end := reader.latestOffset()) != start:
        batches.append(ids(all_rows(reader, reader.partitions(start, end))))
        start = end

    assert batches == [[0, 1], [2, 3], [4]]


def test_a_stream_of_a_keyed_table_has_to_be_told_about_rows_that_go(source, orders):
    opened = source()
    with pytest.raises(lake.InvalidRequestError, match=r"set option\('rowkind', 'true'\)"):
        opened.streamReader(opened.schema()).initialOffset()

    orders.write(rows_of([0, 1]), kinds=["-D", "+U"])
    where = {"scan_mode": "from-snapshot", "scan_snapshot__id": "2"}
    for said, expected in (("true", [0, 1]), ("false", [1])):
        opened = source(rowkind=said, **where)
        reader = opened.streamReader(opened.schema())
        start = reader.initialOffset()
        assert ids(all_rows(reader, reader.partitions(start, reader.latestOffset()))) == expected


def test_the_offsets_of_an_earlier_version_are_read(source, events):
    """Checkpoints named the snapshot that comes next, and the identity of the one before it."""
    for number in (1, 2, 3):
        events.write(rows_of([number]))
    first = events.snapshot(1)
    begun = {"next_snapshot": 2, "full_snapshot": None, "after": first.identity}
    ended = {"next_snapshot": 4, "full_snapshot": None, "after": events.snapshot(3).identity}
    reader = stream(source)
    assert ids(all_rows(reader, reader.partitions(begun, ended))) == [2, 3]
    assert reader.latestOffset()["position"] == str(events.position())

    again = stream(source)
    with pytest.raises(
        lake.NotFoundError, match="up to snapshot 1, but snapshot 1 is a different snapshot now"
    ):
        again.partitions({**begun, "after": "another"}, ended)


def test_a_consumer_keeps_what_the_stream_has_not_read(source, events):
    events.write(rows_of([1]))
    reader = stream(source, consumer__id="copy")
    start, end = reader.initialOffset(), reader.latestOffset()
    assert events.consumers.list() == []  # one that dies here begins with all rows again
    reader.partitions(start, end)
    assert [state.next_snapshot for state in events.consumers.list()] == [1]

    reader.commit(end)
    assert [state.next_snapshot for state in events.consumers.list()] == [2]


def test_a_stream_stops_where_columns_change_and_where_the_table_goes(source, events, catalog):
    events.write(rows_of([1]))
    reader = stream(source)
    reader.initialOffset()
    reader.latestOffset()
    catalog.alter_table("shop.events", lake.add_column("more", "INT"))

    with pytest.raises(lake.InvalidRequestError, match="stops after snapshot 1: the columns of"):
        reader.latestOffset()
    catalog.drop_table("shop.events")
    with pytest.raises(lake.NotFoundError, match="the stream stops after snapshot 1: "):
        reader.latestOffset()


def test_a_running_stream_delivers_the_rows_after_a_change_to_no_producer(source, catalog):
    options = {"bucket": "1", "changelog-producer": "lookup"}
    catalog.create_table("shop.events", COLUMNS, primary_key=["id"], options=options)
    reader = stream(source, rowkind="true", scan_mode="latest")
    start = reader.latestOffset()
    altered = catalog.alter_table("shop.events", lake.set_option("changelog-producer", "none"))
    altered.write(rows_of([7]))
    assert kinds(all_rows(reader, reader.partitions(start, reader.latestOffset()))) == [
        ("+I", 7, "a")
    ]


def test_a_stream_stops_where_the_table_goes_while_tasks_read_it(source, events, catalog):
    for number in (1, 2):
        events.write(rows_of([number]))
    reader = stream(source)
    planned = reader.partitions(reader.initialOffset(), reader.latestOffset())
    catalog.drop_table("shop.events")

    with pytest.raises(lake.NotFoundError, match=r"stops after snapshot 1: table 'shop\.events'"):
        all_rows(reader, planned)


def test_a_stream_whose_snapshots_have_expired_stops_and_says_what_keeps_them(source, events):
    events.write(rows_of([1]))
    end = stream(source).latestOffset()
    for number in (2, 3, 4):
        events.write(rows_of([number]))
    events.expire_snapshots(retain_max=1, retain_min=1)
    again = stream(source)

    with pytest.raises(lake.NotFoundError, match=r"after snapshot 1: .* and a 'consumer-id'"):
        again.partitions(end, again.latestOffset())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scan_mode": "from-snapshot"}, "'from-snapshot' needs option 'scan.snapshot-id'"),
        ({"scan_mode": "from-timestamp"}, "needs option 'scan.timestamp' or 'scan.timestamp-mi"),
        (
            {"scan_snapshot__id": "1"},
            "set 'scan.mode' to 'from-snapshot' or 'from-snapshot-full', or leave",
        ),
        (
            {"scan_mode": "latest", "scan_timestamp__millis": "0"},
            "than 'latest': set 'scan.mode' to 'from-tim",
        ),
        ({"max__snapshots__per__batch": "0"}, "must be at least 1, got 0"),
    ],
)
def test_a_stream_that_is_told_too_little_or_too_much_is_refused(source, events, options, said):
    events.write(rows_of([1]))
    with pytest.raises(lake.InvalidRequestError, match=said):
        stream(source, **options).initialOffset()


def test_a_table_that_was_rolled_back_stops_the_stream(source, events):
    for number in range(3):
        events.write(rows_of([number]))
    reader = stream(source)
    reader.initialOffset()
    events.rollback(snapshot=1, as_latest=False)

    with pytest.raises(lake.NotFoundError, match="rolled back or recreated"):
        reader.latestOffset()


def test_a_table_that_was_rolled_back_and_written_again_stops_the_stream(source, events):
    for number in range(3):
        events.write(rows_of([number]))
    reader = stream(source)
    reader.initialOffset()
    end = reader.latestOffset()
    events.rollback(snapshot=1, as_latest=False)
    for number in range(5):
        events.write(rows_of([number]))
    again = stream(source)  # as after a restart, when Spark knows the offset

    with pytest.raises(lake.NotFoundError, match="snapshot 3 is a different snapshot now"):
        again.partitions(end, again.latestOffset())


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_table_that_was_created_again_stops_the_stream_also_after_expiry(
    source, events, catalog, is_restarted
):
    events.write(rows_of([1]))
    reader = stream(source)
    reader.initialOffset()
    end = reader.latestOffset()
    catalog.drop_table("shop.events")
    again = catalog.create_table("shop.events", COLUMNS)
    for number in (2, 3):
        again.write(rows_of([number]))
    again.expire_snapshots(retain_max=1, retain_min=1)
    if is_restarted:
        reader = stream(source)

    with pytest.raises(lake.NotFoundError, match=r"snapshot 1, but another table has this name"):
        reader.partitions(end, reader.latestOffset())


def test_a_stream_of_a_renamed_table_continues(source, events, catalog):
    events.write(rows_of([1]))
    end = stream(source).latestOffset()
    events.write(rows_of([2]))
    catalog.rename_table("shop.events", "shop.renamed")
    again = stream(source, path="shop.renamed")

    assert ids(all_rows(again, again.partitions(end, again.latestOffset()))) == [2]


def test_a_stream_that_asks_for_an_end_first_begins_before_it(source, events):
    events.write(rows_of([1]))
    reader = stream(source)
    end = reader.latestOffset()
    events.write(rows_of([2]))
    start = reader.initialOffset()

    assert ids(all_rows(reader, reader.partitions(start, end))) == [1]


def test_a_stream_from_a_snapshot_that_has_expired_since_goes_on(source, events):
    for number in range(3):
        events.write(rows_of([number]))
    where = {"scan_mode": "from-snapshot", "scan_snapshot__id": "1"}
    end = stream(source, **where).latestOffset()
    events.expire_snapshots(retain_max=1, retain_min=1)
    events.write(rows_of([3]))
    again = stream(source, **where)

    assert ids(all_rows(again, again.partitions(end, again.latestOffset()))) == [3]


def test_a_first_batch_is_repeated_where_a_power_cut_has_emptied_its_consumer(
    source, events, tmp_path
):
    events.write(rows_of([1]))
    reader = stream(source, consumer__id="copy")
    start, end = reader.initialOffset(), reader.latestOffset()
    reader.partitions(start, end)
    [file] = tmp_path.rglob("consumer-copy")
    file.write_bytes(b"")
    again = stream(source, consumer__id="copy")

    planned = again.partitions(again.initialOffset(), end)

    assert ids(all_rows(again, planned)) == [1]
    assert [state.next_snapshot for state in events.consumers.list()] == [1]


def test_a_stream_that_cannot_begin_says_why_once_it_has_to(source, events, tmp_path):
    events.write(rows_of([1]))
    events.consumers.set("copy", next_snapshot=1)
    [file] = tmp_path.rglob("consumer-copy")
    file.write_bytes(b"")
    reader = stream(source, consumer__id="copy")

    with pytest.raises(lake.CorruptTableError, match="set the consumer"):
        reader.partitions(reader.initialOffset(), reader.latestOffset())


def test_a_batch_that_is_done_is_not_done_again_by_a_query_that_was_changed(
    source, events, warehouse
):
    for rows in ([1, 2], [1], []):
        opened = source(path="shop.events", query="copy")
        writer = opened.streamWriter(opened.schema(), False)
        writer.commit([writer.write(iter(rows_of(rows).to_batches()))], 0)

    assert events.scan().count() == 2
    assert len(data_files(warehouse)) == 1


def test_a_batch_of_a_stream_is_a_commit_by_query_and_number(source, events):
    def batch(number):
        opened = source(path="shop.events", query="copy")
        writer = opened.streamWriter(opened.schema(), False)
        answers = [writer.write(iter(rows_of([number]).to_batches()))]
        writer.commit(answers, number)

    for number in (0, 1, 1):
        batch(number)

    commits = [(s.commit_user, s.commit_identifier) for s in events.snapshots()]
    assert commits == [("spark-copy", 0), ("spark-copy", 1)]
    assert events.scan().count() == 2


# Iceberg tables


@pytest.fixture
def iceberg(source):
    """The data source of an Iceberg table, by its directory."""
    return lambda name, **options: source(path=iceberg_table(name).location, **options)


def test_an_iceberg_table_is_read_by_its_directory_in_parts(iceberg):
    opened = iceberg("many_files", columns="id")
    reader = opened.reader(opened.schema())
    parts = reader.partitions()
    assert len(parts) > 1
    rows = all_rows(reader, parts)
    assert len(rows) == lake.open_table(iceberg_table("many_files").location).scan().count()


def test_an_iceberg_table_is_read_at_a_snapshot_and_with_a_condition(iceberg):
    assert ids(read(iceberg("cow_dml", scan_snapshot__id="1"))) == [1, 2, 3, 4]
    assert ids(read(iceberg("cow_dml", where="p = 1", columns="id"))) == [1, 2]
    assert len(read(iceberg("branches_tags", scan_tag__name="first"))) == 2


def test_changes_of_an_iceberg_table_have_a_kind_unless_it_is_left_out(iceberg):
    changed = read(iceberg("cow_dml", incremental__between="1,2"))
    assert sorted((row["rowkind"], row["v"]) for row in changed) == [("+I", "B"), ("-D", "b")]
    kept = read(iceberg("cow_dml", incremental__between="1,2", rowkind="false"))
    assert kept == [{"id": 2, "v": "B", "p": 1}]


@pytest.fixture
def iceberg_events(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.create_database("shop")
    return catalog.create_table("shop.events", COLUMNS, primary_key=["id"], format_version=3)


def iceberg_stream(source, table, **options):
    return stream(source, path=table.location, rowkind="true", **options)


def kinds(rows):
    return sorted((row["rowkind"], row["id"], row["note"]) for row in rows)


def test_a_stream_of_an_iceberg_table_brings_all_rows_then_changes_with_their_kinds(
    source, iceberg_events
):
    iceberg_events.write(rows_of([1, 2]))
    reader = iceberg_stream(source, iceberg_events)
    start, first = reader.initialOffset(), reader.latestOffset()
    iceberg_events.delete("id = 1")
    iceberg_events.upsert(rows_of([2, 3], "b"))
    iceberg_events.compact(rewrite_all=True)
    again = iceberg_stream(source, iceberg_events)  # as after a restart
    second = again.latestOffset()
    brought = all_rows(reader, reader.partitions(start, first))
    assert kinds(brought) == [("+I", 1, "a"), ("+I", 2, "a")]
    assert kinds(all_rows(again, again.partitions(first, second))) == [
        ("+I", 3, "b"),
        ("+U", 2, "b"),
        ("-D", 1, "a"),
        ("-U", 2, "a"),
    ]
    kept = stream(source, path=iceberg_events.location, rowkind="false")
    assert ids(all_rows(kept, kept.partitions(first, second))) == [2, 3]
    assert again.latestOffset() == second


def test_a_stream_of_an_iceberg_table_takes_a_few_snapshots_at_a_time(source, iceberg_events):
    for number in range(4):
        iceberg_events.write(rows_of([number]))
    first = iceberg_events.snapshots()[0].id
    options = {"scan_mode": "from-snapshot", "scan_snapshot__id": str(first)}
    reader = iceberg_stream(source, iceberg_events, max__snapshots__per__batch="3", **options)
    start, middle = reader.initialOffset(), reader.latestOffset()
    end = reader.latestOffset()
    assert ids(all_rows(reader, reader.partitions(start, middle))) == [0, 1, 2]
    assert ids(all_rows(reader, reader.partitions(middle, end))) == [3]


def test_a_stream_of_an_iceberg_table_stops_after_a_rollback(source, iceberg_events):
    for number in range(3):
        iceberg_events.write(rows_of([number]))
    reader = iceberg_stream(source, iceberg_events, scan_mode="latest")
    start = reader.latestOffset()
    iceberg_events.rollback(snapshot=iceberg_events.snapshots()[0].id)
    iceberg_events.write(rows_of([7]))
    with pytest.raises(lake.NotFoundError, match="the stream stops after snapshot 3"):
        reader.partitions(start, reader.latestOffset())


def test_a_stream_of_an_iceberg_table_stops_where_columns_change(source, iceberg_events, tmp_path):
    iceberg_events.write(rows_of([1]))
    reader = iceberg_stream(source, iceberg_events)
    reader.latestOffset()
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.alter_table("shop.events", lake.add_column("more", "INT"))
    with pytest.raises(lake.InvalidRequestError, match=r"the columns of .* have changed since"):
        reader.latestOffset()
    again = iceberg_stream(source, iceberg_events)
    start = again.initialOffset()
    [row] = all_rows(again, again.partitions(start, again.latestOffset()))
    assert (row["id"], row["more"]) == (1, None)
    catalog.alter_table("shop.events", lake.update_column_type("more", "BIGINT"))
    with pytest.raises(lake.InvalidRequestError, match=r"\(type or default of more\)"):
        again.latestOffset()


def test_a_stream_continues_where_only_a_comment_changes(source, iceberg_events, tmp_path):
    reader = iceberg_stream(source, iceberg_events, scan_mode="latest")
    start = reader.latestOffset()
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.alter_table("shop.events", lake.update_column_comment("id", "the key"))
    iceberg_events.write(rows_of([7]))
    assert ids(all_rows(reader, reader.partitions(start, reader.latestOffset()))) == [7]


def test_a_stream_of_an_iceberg_table_needs_a_choice_about_deleted_rows(iceberg):
    opened = iceberg("cow_dml")
    with pytest.raises(lake.InvalidRequestError, match=r"commits may delete rows.*'rowkind'"):
        opened.streamReader(opened.schema()).initialOffset()


@pytest.mark.parametrize("kind", ["iceberg", "mixed"])
def test_system_tables_of_the_other_formats_are_read_and_refuse_what_they_lack(tmp_path, kind):
    catalog = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), *COLUMNS[1:]]
    catalog.create_table("shop.events", columns, format=kind, primary_key=["id"]).write(
        rows_of([1, 2])
    )
    format_lake = source_in(Warehouse(catalog.location, {"format": "iceberg"}), at_once=2)
    options = {"path": "shop.events$files", "columns": "record_count"}
    files = catalog.table("shop.events").system_table("files").scan(["record_count"])
    assert read(format_lake(options)) == files.to_arrow().to_pylist()
    with pytest.raises(lake.InvalidRequestError, match="'rowkind' does not apply to a system tab"):
        read(format_lake({**options, "rowkind": "true"}))
    with pytest.raises(lake.InvalidRequestError, match="where"):
        read(format_lake({**options, "where": "record_count = 2"}))
    stream = format_lake({**options, "scan.mode": "latest"})
    reader = stream.streamReader(stream.schema())
    with pytest.raises(lake.UnsupportedError, match="cannot stream a system table"):
        reader.initialOffset()
