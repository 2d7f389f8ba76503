"""An append table from the outside: what is written is read, in every accepted form."""

from __future__ import annotations

import datetime
import decimal
import io

import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

import lakeformat as lake


@pytest.fixture
def orders(catalog) -> lake.Table:
    return catalog.create_table("shop.orders", [("id", "BIGINT"), ("note", "STRING")])


ROWS = pa.table({"id": [1, 2, 3], "note": ["a", None, ""]})


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
        ROWS.to_pandas(),
        polars.from_arrow(ROWS),
        [ROWS.slice(0, 1), ROWS.slice(1).to_batches()[0]],
        iter(ROWS.to_batches()),
        ROWS.select(["note", "id"]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_may_come_in_any_of_these_forms(orders, data):
    orders.write(data)
    assert orders.scan().to_arrow() == ROWS


@pytest.mark.parametrize("data", [{"id": [1]}, [{"id": 1}], "rows", 7, None])
def test_what_holds_no_rows_is_refused_with_the_forms_that_do(orders, data):
    with pytest.raises(lake.InvalidRequestError, match=r"pandas or polars DataFrame"):
        orders.write(data)
    assert orders.snapshots() == []


def test_every_write_is_a_snapshot_and_older_ones_stay_readable(orders):
    orders.write(ROWS)
    report = orders.write(ROWS.slice(0, 1))
    assert (report.snapshot_id, report.rows, report.files) == (2, 1, 1)
    assert [s.total_record_count for s in orders.snapshots()] == [3, 4]
    assert orders.scan(snapshot=1).to_arrow() == ROWS
    assert orders.scan().count() == 4


def test_rows_come_back_in_the_order_they_were_written(catalog):
    table = catalog.create_table(
        "shop.many", [("id", "BIGINT")], options={"target-file-size": "1 mb"}
    )
    numbers = numpy.random.default_rng(1).integers(0, 2**62, 700_000)
    report = table.write(pa.table({"id": numbers}))
    assert report.files > 1
    assert table.scan().to_arrow()["id"].to_numpy().tolist() == numbers.tolist()


def test_writing_nothing_makes_no_snapshot_and_says_so(orders):
    report = orders.write(ROWS.slice(0, 0))
    assert (report.snapshot_id, report.reason) == (
        None,
        "no rows to commit, so no snapshot was published",
    )
    assert orders.latest_snapshot() is None
    assert orders.scan().to_arrow().num_rows == 0


def test_the_same_commit_twice_publishes_once(orders):
    identity = lake.CommitId("run-1", 0)
    first = orders.write(ROWS, commit=identity)
    second = orders.write(ROWS, commit=identity)
    assert (first.replayed, second.replayed) == (False, True)
    assert (first.snapshot_id, second.snapshot_id, second.rows) == (1, 1, 3)
    assert orders.scan().count() == 3


def test_another_run_or_number_is_another_commit(orders):
    for identity in (lake.CommitId("a", 0), lake.CommitId("a", 1), lake.CommitId("b", 0)):
        assert not orders.write(ROWS, commit=identity).replayed
    assert orders.write(ROWS, commit=lake.CommitId("a", 0)).snapshot_id == 1


def test_writers_in_other_processes_send_their_messages_as_bytes(orders):
    sent = []
    for part in (ROWS.slice(0, 2), ROWS.slice(2)):
        writer = orders.new_writer()
        writer.write(part)
        sent += [message.to_bytes() for message in writer.prepare()]
    assert orders.scan().count() == 0

    report = orders.commit([lake.CommitMessage.from_bytes(content) for content in sent])

    assert (report.snapshot_id, report.rows, report.files) == (1, 3, 2)
    assert orders.scan().to_arrow() == ROWS


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"{}"])
def test_bytes_that_are_no_message_are_refused(content):
    with pytest.raises(lake.InvalidRequestError, match="not a commit message"):
        lake.CommitMessage.from_bytes(content)


def test_a_writer_left_by_an_exception_leaves_no_file(orders, tmp_path):
    def failing():
        yield ROWS
        raise KeyError("source broke")

    with pytest.raises(KeyError):
        orders.write(failing())
    assert list(tmp_path.rglob("*.parquet")) == []
    assert orders.latest_snapshot() is None


def test_watermark_and_properties_are_kept_and_the_watermark_never_falls(orders):
    orders.write(ROWS, watermark=10, properties={"source": "erp"})
    orders.write(ROWS, watermark=5)
    first, second = orders.snapshots()
    assert (first.watermark, first.properties) == (10, {"source": "erp"})
    assert (second.watermark, second.properties) == (10, None)


def test_only_the_columns_asked_for_are_read_in_that_order(orders):
    orders.write(ROWS)
    assert orders.scan(["note", "id"]).to_arrow() == ROWS.select(["note", "id"])
    assert orders.scan(["id"]).schema.names == ["id"]


@pytest.mark.parametrize("columns", [["nix"], [], "id"])
def test_columns_that_are_not_there_are_refused(orders, columns):
    with pytest.raises(lake.InvalidRequestError, match="columns must name some of id, note"):
        orders.scan(columns)


def test_a_snapshot_that_is_not_there_is_refused(orders):
    with pytest.raises(lake.NotFoundError, match="the table has no snapshot yet"):
        orders.scan(snapshot=4)


VALUES = {
    "BOOLEAN": [True, None],
    "TINYINT": [-128, 127],
    "SMALLINT": [-(2**15), None],
    "INT": [2**31 - 1, None],
    "BIGINT": [-(2**63), None],
    "FLOAT": [1.5, None],
    "DOUBLE": [-0.1, None],
    "CHAR(3)": ["abc", None],
    "VARCHAR(2)": ["é中", None],
    "STRING": ["", None],
    "BINARY(2)": [b"ab", None],
    "BYTES": [b"", None],
    "DECIMAL(9, 2)": [decimal.Decimal("-1234567.89"), None],
    "DECIMAL(18, 4)": [decimal.Decimal("99999999999999.9999"), None],
    "DECIMAL(38, 10)": [decimal.Decimal("1234567890123456789012345678.0123456789"), None],
    "DATE": [datetime.date(1969, 12, 31), None],
    "TIME": [datetime.time(23, 59, 59, 999000), None],
    "TIMESTAMP(3)": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), None],
    "TIMESTAMP(6)": [datetime.datetime(2026, 1, 1, 0, 0, 0, 1), None],
    "TIMESTAMP_LTZ(3)": [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), None],
    "TIMESTAMP_LTZ(6)": [datetime.datetime(1, 1, 1, tzinfo=datetime.UTC), None],
    "ARRAY<INT>": [[1, None], []],
    "MAP<STRING, ARRAY<INT>>": [[("a", [1]), ("b", None)], None],
    "MULTISET<STRING>": [[("a", 2)], []],
    "ROW<a INT, b ROW<c STRING>>": [{"a": 1, "b": {"c": "x"}}, None],
}


@pytest.mark.parametrize("type_text", VALUES)
def test_values_of_every_type_come_back_exactly(catalog, type_text):
    table = catalog.create_table("shop.types", [("v", type_text)])
    rows = pa.table({"v": pa.array(VALUES[type_text], table.schema.arrow_schema()[0].type)})
    table.write(rows)
    read = table.scan().to_arrow()
    assert read.to_pylist() == rows.to_pylist()
    assert read.schema == table.schema.arrow_schema()


def test_nanoseconds_are_kept(catalog):
    table = catalog.create_table("shop.nanos", [("v", "TIMESTAMP(9)")])
    moments = pa.array([1, -1, None], pa.timestamp("ns"))
    table.write(pa.table({"v": moments}))
    assert table.scan().to_arrow()["v"].combine_chunks() == moments


def test_values_that_fit_are_widened(catalog):
    table = catalog.create_table("shop.wide", [("a", "BIGINT"), ("b", "DECIMAL(10, 2)")])
    table.write(pa.table({"a": pa.array([1], pa.uint8()), "b": pa.array([3], pa.int32())}))
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "b": decimal.Decimal("3.00")}]


FINE_FLOATS = pa.array([[("a", 0.5)], [("b", 0.1)]], pa.map_(pa.string(), pa.float64()))
TOO_LONG_KEY = pa.array([[("a", 1)], [("abc", 1)]], pa.map_(pa.string(), pa.int32()))


@pytest.mark.parametrize(
    ("type_text", "values", "reason"),
    [
        ("TINYINT", pa.array([300]), "does not fit into int8 without loss"),
        ("INT", pa.array([1.5]), "does not fit into int32"),
        ("INT", pa.array(["1"]), "has type string, but the table needs int32"),
        ("STRING", pa.array([1]), "has type int64, but the table needs string"),
        ("DECIMAL(3, 1)", pa.array([1000]), "does not fit"),
        ("DECIMAL(3, 1)", pa.array([0.5]), "has type double, but the table needs decimal"),
        ("TIMESTAMP(3)", pa.array([1], pa.timestamp("us")), "does not fit"),
        ("TIMESTAMP(3)", pa.array([1], pa.timestamp("ms", "UTC")), "the table needs timestamp"),
        ("VARCHAR(2)", pa.array(["abc"]), r"is VARCHAR\(2\), but a value has a length of 3"),
        ("BINARY(2)", pa.array([b"abc"]), r"is BINARY\(2\), but a value has a length of 3"),
        ("INT NOT NULL", pa.array([1, None]), "is NOT NULL, but is null in 1 of 2 rows"),
        (
            "TIMESTAMP(0)",
            pa.array([1500], pa.timestamp("ms")),
            "keeps 0 fractional digits of a second",
        ),
        (
            "TIMESTAMP(4)",
            pa.array([-1], pa.timestamp("us")),
            "keeps 4 fractional digits of a second",
        ),
        (
            "ARRAY<INT NOT NULL>",
            pa.array([[1], [1, None]]),
            "'v.element' is NOT NULL, but is null in 1 of 3 elements; .* in row 1",
        ),
        ("ROW<a INT>", pa.array([{"a": 1, "b": 2}]), "has type struct.*convert it before writing"),
        ("ARRAY<ROW<a INT>>", pa.array([[{"b": 2}]]), "convert it before writing"),
        ("MAP<STRING, INT>", pa.array([[(1, 2)]], pa.map_("int32", "int32")), "convert it"),
        ("ROW<a CHAR(2)>", pa.array([{"a": "abc"}]), r"'v.a' is CHAR\(2\)"),
        ("MAP<CHAR(2), INT>", TOO_LONG_KEY, r"'v.key' is CHAR\(2\)"),
        ("MAP<CHAR(2), INT>", TOO_LONG_KEY.slice(1), r"'v.key' is CHAR\(2\)"),
        ("FLOAT", pa.array([0.5, None, 0.1]), "'v' is a FLOAT, which cannot store 0.1 exactly"),
        ("FLOAT", pa.array([1e300]), "cannot store 1e\\+300"),
        ("FLOAT", pa.array([0.1]).dictionary_encode(), "cannot store 0.1 exactly"),
        ("ARRAY<FLOAT>", pa.array([None, [0.5], [0.1]]).slice(1), "'v.element' is a FLOAT"),
        ("ROW<a FLOAT>", pa.array([None, {"a": 0.1}]), "'v.a' is a FLOAT"),
        ("MAP<STRING, FLOAT>", FINE_FLOATS, "'v.value' is a FLOAT"),
        ("MAP<STRING, FLOAT>", FINE_FLOATS.slice(1), "'v.value' is a FLOAT"),
        ("TIME", pa.array([-5], pa.time32("ms")), "'v' is a TIME, but a value is -5 ms"),
        (
            "TIME",
            pa.array([25 * 3600], pa.time32("s")),
            "'v' is a TIME, but a value is 90000000 ms",
        ),
        ("ARRAY<TIME>", pa.array([[86_400_000]], pa.list_(pa.time32("ms"))), "'v.element' is a T"),
        ("ROW<a INT, b INT NOT NULL>", pa.array([{"a": 1}]), "'v' does not fit.*`b` not found"),
    ],
)
def test_values_the_column_cannot_hold_are_refused_and_nothing_is_written(
    catalog, tmp_path, type_text, values, reason
):
    table = catalog.create_table("shop.strict", [("v", type_text)])
    with pytest.raises(lake.InvalidRequestError, match=reason):
        table.write(pa.table({"v": values}))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_doubles_that_are_floats_are_stored_as_such(catalog):
    table = catalog.create_table("shop.floats", [("v", "FLOAT"), ("w", "ARRAY<FLOAT>")])
    values = [0.5, None, float("inf"), -0.0]
    table.write(pa.table({"v": values, "w": [[value] for value in values]}))
    table.write(pa.table({"v": [float("nan")]}))
    read = table.scan().to_arrow()
    assert str(read["v"].to_pylist()) == "[0.5, None, inf, -0.0, nan]"
    assert read["w"].to_pylist()[:4] == [[0.5], [None], [float("inf")], [-0.0]]


def test_a_time_keeps_the_milliseconds_of_one_day(catalog):
    table = catalog.create_table("shop.times", [("v", "TIME(0)")])
    day = pa.array([0, 1, 86_399_999], pa.time32("ms"))
    table.write(pa.table({"v": day}))
    assert table.scan().to_arrow()["v"].combine_chunks() == day


@pytest.mark.parametrize(
    "column",
    [
        ROWS["id"],
        ROWS["id"].combine_chunks(),
        pandas.Series([1]),
        pandas.Index([1]),
        polars.Series([1]),
        numpy.array([1]),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_a_single_column_is_refused_by_the_name_of_its_class(orders, column):
    with pytest.raises(lake.InvalidRequestError, match=f"cannot write {type(column).__name__}: "):
        orders.write(column)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pandas.DataFrame({"id": [1, "a"]}), "column id .*give each column a name of its own"),
        (pandas.DataFrame({"id": [1 + 2j]}), "column id"),
        (pandas.DataFrame([[1, 2]], columns=["id", "id"]), "Duplicate column names"),
    ],
)
def test_a_frame_that_is_no_table_is_refused_with_its_column(orders, frame, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        orders.write(frame)


def test_a_struct_may_lack_nullable_fields_and_order_them_otherwise(catalog):
    table = catalog.create_table("shop.structs", [("v", "ROW<a BIGINT, b STRING, c INT>")])
    table.write(pa.table({"v": pa.array([{"b": "x", "a": 1}])}))
    assert table.scan().to_arrow().to_pylist() == [{"v": {"a": 1, "b": "x", "c": None}}]


STRICT = "ROW<a INT NOT NULL, b ROW<c STRING NOT NULL>>"
INNER = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
NULL_ROWS = [None, {"a": 1, "b": None}, {"a": 2, "b": {"c": "x"}}]


def read_from_parquet(values: list[object], kind: pa.DataType) -> pa.Table:
    """Return rows as a Parquet reader makes them, with nulls below each null ROW."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"v": pa.array(values, kind)}), file)
    return pyarrow.parquet.read_table(file)


@pytest.mark.parametrize(
    ("type_text", "kind", "values"),
    [
        (STRICT, INNER, NULL_ROWS),
        (f"ARRAY<{STRICT}>", pa.list_(INNER), [NULL_ROWS, None, []]),
        (f"ARRAY<{STRICT}>", pa.large_list(INNER), [NULL_ROWS]),
        (f"MAP<INT, {STRICT}>", pa.map_("int32", INNER), [[*enumerate(NULL_ROWS)]]),
        (f"ROW<l ARRAY<{STRICT}>>", pa.struct([("l", pa.list_(INNER, 3))]), [{"l": NULL_ROWS}]),
    ],
)
def test_a_null_row_may_have_null_members_that_are_not_null(catalog, type_text, kind, values):
    table = catalog.create_table("shop.nested", [("v", type_text)])
    for start in range(len(values)):
        table.write(read_from_parquet(values, kind).slice(start))
    assert table.scan().to_arrow()["v"].to_pylist() == [
        each for start in range(len(values)) for each in values[start:]
    ]


@pytest.mark.parametrize("value", [{"a": None, "b": None}, {"a": 1, "b": {"c": None}}])
def test_a_member_that_is_not_null_is_checked_beside_null_rows(catalog, value):
    table = catalog.create_table("shop.nested", [("v", STRICT)])
    with pytest.raises(lake.InvalidRequestError, match=r"has nulls.* value is in row 3"):
        table.write(read_from_parquet([*NULL_ROWS, value], INNER))


NUMBER = pa.struct({"a": pa.int32()})
TEXTS = [{"a": "x"}, None, {"a": "y"}]


@pytest.mark.parametrize("kind", [pa.dictionary("int32", pa.string()), pa.string_view()])
@pytest.mark.parametrize("member", ["STRING", "STRING NOT NULL"])
def test_a_null_row_may_have_a_dictionary_or_a_view_below(catalog, kind, member):
    columns = [("v", f"ROW<a {member}>"), ("l", f"ARRAY<ROW<a {member}>>")]
    table = catalog.create_table("shop.nested", columns)
    texts = pa.array(["x", None, "y"])
    values = texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
    mask = pa.array([False, True, False])
    given = pa.StructArray.from_arrays([values], fields=[pa.field("a", kind)], mask=mask)
    lists = pa.ListArray.from_arrays(pa.array([0, None, 2, 3], pa.int32()), given)
    table.write(pa.table({"v": given, "l": lists}))
    rows = table.scan().to_arrow()
    assert rows["v"].to_pylist() == TEXTS
    assert rows["l"].to_pylist() == [TEXTS[:2], None, TEXTS[2:]]


def test_a_null_row_of_polars_is_written(catalog):
    table = catalog.create_table("shop.nested", [("v", "ROW<a STRING NOT NULL>")])
    table.write(polars.DataFrame({"v": TEXTS}))
    assert table.scan().to_arrow()["v"].to_pylist() == TEXTS


@pytest.mark.parametrize(
    ("type_text", "kind", "values"),
    [
        ("ARRAY<ROW<a INT NOT NULL>>", pa.list_(NUMBER), [[{"a": 1}], [None], [{"a": None}]]),
        (
            "MAP<INT, ROW<a INT NOT NULL>>",
            pa.map_("int32", NUMBER),
            [[(1, {"a": 1})], [(1, None)], [(1, {"a": None})]],
        ),
        ("ARRAY<TINYINT>", pa.list_(pa.int64()), [[1], [None], [300]]),
    ],
)
def test_only_the_rows_of_a_slice_are_checked(catalog, type_text, kind, values):
    table = catalog.create_table("shop.nested", [("v", type_text)])
    rows = pa.table({"v": pa.array(values, kind)})
    table.write(rows.slice(0, 2))
    assert table.scan().to_arrow()["v"].to_pylist() == values[:2]
    with pytest.raises(lake.InvalidRequestError, match=r"first refused value is in row 2"):
        table.write(rows)


def test_absent_columns_are_null_unless_they_must_not_be(catalog):
    table = catalog.create_table("shop.sparse", [("a", "INT"), ("b", "INT NOT NULL")])
    table.write(pa.table({"b": [1]}))
    assert table.scan().to_arrow().to_pylist() == [{"a": None, "b": 1}]
    with pytest.raises(lake.InvalidRequestError, match="'b' is NOT NULL"):
        table.write(pa.table({"a": [1]}))


def test_columns_the_table_does_not_have_are_refused_by_name(orders):
    with pytest.raises(
        lake.InvalidRequestError, match="no column 'nope'; its columns are id, note"
    ):
        orders.write(pa.table({"id": [1], "nope": [2]}))


def test_a_pandas_index_is_not_a_column(orders):
    frame = pandas.DataFrame({"id": [7]}, index=["x"])
    orders.write(frame)
    assert orders.scan().to_pandas()["id"].tolist() == [7]


def test_options_this_version_does_not_honour_stop_writing_but_not_reading(orders, tmp_path):
    orders.write(ROWS)
    schema_file = tmp_path / "shop.db" / "orders" / "schema" / "schema-0"
    foreign = '"options": {"metadata.iceberg.storage": "glue-catalog"}'
    schema_file.write_text(schema_file.read_text().replace('"options": {}', foreign))
    reopened = lake.open_table(orders.location)
    assert reopened.scan().count() == 3
    with pytest.raises(lake.UnsupportedError, match=r"iceberg\.storage'.*Nothing was changed"):
        reopened.write(ROWS)


def test_a_missing_data_file_is_an_error_that_names_it(orders, tmp_path):
    orders.write(ROWS)
    [file] = tmp_path.rglob("*.parquet")
    file.unlink()
    with pytest.raises(lake.CorruptTableError, match=f"{file.name} is missing"):
        orders.scan().to_arrow()


def test_a_damaged_data_file_is_an_error_that_names_it(orders, tmp_path):
    orders.write(ROWS)
    [file] = tmp_path.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(lake.CorruptTableError, match=f"{file.name} cannot be read"):
        orders.scan().to_arrow()
