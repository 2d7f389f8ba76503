"""``ingest`` reads PostgreSQL: no value is changed on the way, and what does not fit is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.types.type_text import parse_type
from spark_jobs.ingest import run


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(tmp_path / "warehouse")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def database(postgres):
    return postgres.make_database()


@pytest.fixture
def execute(postgres, database):
    return lambda statement: postgres.execute(statement, database)


@pytest.fixture
def ingest(postgres, database, tmp_path):
    """Ingest the SQL table ``orders``; keys of the request may be changed."""

    def call(**more):
        request = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.orders",
            "jdbc_url": postgres.url(database),
            "jdbc_table": "orders",
            "create": True,
        }
        return run({**request, **more})

    return call


@pytest.fixture
def read(execute, ingest, catalog):
    """Ingest values of a SQL type, given as SQL, into a column of a type, or with casts; return the
    column of the lake.
    """

    def call(sql_type, values, type=None, **more):
        execute(f"CREATE TABLE orders (value {sql_type})")
        for each in values:
            execute(f"INSERT INTO orders VALUES ({each})")
        if type is not None:
            catalog.create_table("shop.orders", [("value", type)])
        ingest(**more)
        return values_of(catalog)

    return call


def values_of(catalog):
    return catalog.table("shop.orders").scan().to_arrow()["value"].to_pylist()


def test_a_number_without_a_scale_has_the_same_text_beside_each_other_number(
    execute, ingest, read, catalog
):
    keyed = {"primary_key": ["value"], "casts": {"value": "STRING"}}
    numbers = ["1", "20.50", "1e40", "'NaN'"]
    first = read("NUMERIC", numbers, **keyed, table_options={"bucket": "1"})
    assert sorted(first) == ["1", "1" + "0" * 40, "20.50", "NaN"]

    execute("INSERT INTO orders VALUES (1.001)")
    ingest(**keyed, table_options={"bucket": "1"})

    assert sorted(values_of(catalog)) == sorted([*first, "1.001"])


OBJECTS = ['{"b": 1}', '{"a": "q"}']


@pytest.mark.parametrize("more", [{"type": "STRING"}, {"casts": {"value": "STRING"}}])
def test_json_of_a_domain_keeps_its_names_as_text(execute, read, more):
    execute("CREATE DOMAIN document AS JSONB")
    assert read("document", [f"'{each}'" for each in OBJECTS], **more) == OBJECTS


@pytest.mark.parametrize("sql_type", ["json", "document"])
def test_json_in_an_array_keeps_its_names_as_text(execute, read, sql_type):
    execute("CREATE DOMAIN document AS JSONB")
    values = [f"ARRAY['{each}'::{sql_type}]" for each in OBJECTS]
    found = read(f"{sql_type}[]", values, casts={"value": "STRING"})
    assert found == [f"[{each}]" for each in OBJECTS]


ID = "11111111-1111-1111-1111-111111111111"


@pytest.mark.parametrize(
    ("sql_type", "text"),
    [("uuid", ID), ("word", "abc"), ("money", "$12.00"), ("tsvector", "'abc'"), ("bit(3)", "101")],
)
def test_an_array_becomes_an_array_of_the_texts_of_its_values(execute, read, sql_type, text):
    execute("CREATE DOMAIN word AS TEXT")
    value = text.replace("'", "''")
    assert read(f"{sql_type}[]", [f"ARRAY['{value}'::{sql_type}]"], "ARRAY<STRING>") == [[text]]


UNKNOWN = pytest.mark.filterwarnings("ignore:Did not recognize type")


@pytest.mark.parametrize(
    ("sql_type", "value", "type", "found"),
    [
        ("TEXT[]", "'{a, NULL}'", "ARRAY<STRING>", ["a", None]),
        ("INT[]", "'{1}'", "ARRAY<INT>", [1]),
        ("NUMERIC[]", "'{1.5}'", "ARRAY<DECIMAL(10, 2)>", [Decimal("1.50")]),
        ("INT[]", "'{1}'", "ARRAY<DOUBLE>", [1.0]),
        ("INT[][]", "'{{1}, {2}}'", "ARRAY<ARRAY<BIGINT>>", [[1], [2]]),
    ],
)
def test_an_array_gets_its_type_in_a_new_table_by_a_cast(
    catalog, read, sql_type, value, type, found
):
    assert read(sql_type, [value], casts={"value": type}) == [found]
    [column] = catalog.table("shop.orders").schema.fields
    assert column.type == parse_type(type)


@pytest.mark.parametrize(
    ("sql_type", "value", "type", "reason"),
    [
        ("BIGINT[]", "'{3000000000}'", "ARRAY<INT>", r"column 'value' does not fit the type"),
        ("NUMERIC[]", "'{1.234}'", "ARRAY<DECIMAL(10, 2)>", r"column 'value' does not fit the"),
        ("TEXT[]", "'{1}'", "ARRAY<INT>", r"ARRAY<STRING> cannot become ARRAY<INT>"),
        ("NUMERIC[]", "'{1.5}'", "ARRAY<INT>", r"cannot become ARRAY<INT>"),
        ("FLOAT8[]", "'{1.5}'", "ARRAY<INT>", r"cannot become ARRAY<INT>"),
        ("FLOAT8[]", "'{1e39}'", "ARRAY<FLOAT>", r"1e\+39 is too large for the type"),
    ],
)
def test_an_array_that_does_not_fit_its_cast_is_refused(
    catalog, read, sql_type, value, type, reason
):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        read(sql_type, [value], casts={"value": type})
    assert catalog.list_tables("shop") == []


@UNKNOWN
@pytest.mark.parametrize(
    ("base", "text"),
    [
        ("CHAR(5)", "abcde"),
        ("BIT(3)", "101"),
        ("BIT VARYING(3)", "101"),
        ("VARCHAR(3)", "abc"),
        ("POINT", "(1,2)"),
        ("pair", "(1,a)"),
        ("UUID", ID),
    ],
)
@pytest.mark.parametrize("more", [{"type": "STRING"}, {"casts": {"value": "STRING"}}])
def test_a_domain_keeps_its_values(execute, read, base, text, more):
    execute("CREATE TYPE pair AS (a INT, b TEXT)")
    execute(f"CREATE DOMAIN one AS {base}")
    execute("CREATE DOMAIN two AS one")
    assert read("two", [f"'{text}'"], **more) == [text]


@UNKNOWN
@pytest.mark.parametrize(
    ("base", "text"),
    [
        ("CHAR(5)", "abcde"),
        ("BIT(3)", "101"),
        ("VARCHAR(3)", "abc"),
        ("POINT", "(1,2)"),
        ("pair", "(1,a)"),
        ("UUID", ID),
        ("TIMESTAMP(3) WITH TIME ZONE", "2024-01-01 01:00:00+01"),
        ("TIME(3) WITH TIME ZONE", "10:00:00+02"),
        ("VARCHAR(3)[]", "{abc}"),
        ("INT[]", "{1}"),
    ],
)
def test_an_array_of_a_domain_keeps_its_values(execute, read, database, base, text):
    execute(f"ALTER DATABASE {database} SET timezone TO 'Europe/Berlin'")
    execute("CREATE TYPE pair AS (a INT, b TEXT)")
    execute(f"CREATE DOMAIN one AS {base}")
    execute("CREATE DOMAIN two AS one")
    assert read("two[]", [f"ARRAY['{text}'::two]"], "ARRAY<STRING>") == [[text]]


MIDNIGHT = datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("base", "text", "type", "found"),
    [
        ("TIMESTAMP", "2024-01-01 00:00", "TIMESTAMP(6)", MIDNIGHT),
        (
            "TIMESTAMP(3)",
            "2024-01-01 00:00:00.5",
            "TIMESTAMP(6)",
            MIDNIGHT.replace(microsecond=500_000),
        ),
        (
            "TIMESTAMP(3) WITH TIME ZONE",
            "2024-01-01 00:00Z",
            "TIMESTAMP_LTZ(6)",
            MIDNIGHT.replace(tzinfo=UTC),
        ),
        ("TIME", "10:00", "TIME(3)", time(10)),
    ],
)
def test_times_of_a_domain_are_read_in_an_array(execute, read, database, base, text, type, found):
    execute(f"ALTER DATABASE {database} SET timezone TO 'Europe/Berlin'")
    execute(f"CREATE DOMAIN one AS {base}")
    values = [f"ARRAY['{text}'::one, NULL]", "NULL"]
    assert read("one[]", values, f"ARRAY<{type}>") == [[found, None], None]


def test_timestamps_of_a_domain_in_an_array_are_cast(execute, read):
    execute("CREATE DOMAIN one AS TIMESTAMP")
    kind, values = "ARRAY<TIMESTAMP(6)>", ["ARRAY['2024-01-01 00:00'::one]"]
    assert read("one[]", values, kind, casts={"value": kind}) == [[MIDNIGHT]]


@pytest.mark.parametrize(
    ("base", "text", "type"),
    [
        ("TIMESTAMP", "infinity", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITH TIME ZONE", "2024-01-01 00:00Z", "TIMESTAMP(6)"),
        ("TIME", "24:00", "TIME(3)"),
        ("TIME(3) WITH TIME ZONE", "10:00+02", "TIME(3)"),
    ],
)
def test_times_of_a_domain_in_an_array_that_do_not_fit_are_refused(
    execute, read, catalog, base, text, type
):
    execute(f"CREATE DOMAIN one AS {base}")
    with pytest.raises(lake.InvalidRequestError, match=r"'value'|does not fit its column's type"):
        read("one[]", [f"ARRAY['{text}'::one]"], f"ARRAY<{type}>")
    assert catalog.table("shop.orders").latest_snapshot() is None


@pytest.mark.parametrize("more", [{"type": "TIMESTAMP_LTZ(6)"}, {}])
@pytest.mark.parametrize("precision", ["", "(3)"])
def test_a_timestamp_of_a_domain_keeps_its_zone(execute, read, database, precision, more):
    execute(f"ALTER DATABASE {database} SET timezone TO 'Europe/Berlin'")
    execute(f"CREATE DOMAIN instant AS TIMESTAMP{precision} WITH TIME ZONE")
    more = more or {"casts": {"value": "TIMESTAMP_LTZ(6)"}}
    found = read("instant", ["'2024-01-01 00:00Z'"], **more)
    assert found == [datetime(2024, 1, 1, tzinfo=UTC)]


def test_a_timestamp_of_a_domain_does_not_lose_its_zone(execute, read, catalog):
    execute("CREATE DOMAIN instant AS TIMESTAMP(3) WITH TIME ZONE")
    with pytest.raises(lake.InvalidRequestError, match=r"'value'"):
        read("instant", ["'2024-01-01 00:00Z'"], "TIMESTAMP(6)")
    assert catalog.table("shop.orders").latest_snapshot() is None


@pytest.mark.parametrize(
    ("base", "literal", "type", "found"),
    [
        ("VARCHAR(3)[]", "'{abc}'", "ARRAY<STRING>", ["abc"]),
        ("CHAR(3)[]", "'{abc}'", "ARRAY<STRING>", ["abc"]),
        ("NUMERIC(10, 2)[]", "'{1.5}'", "ARRAY<DECIMAL(10, 2)>", [Decimal("1.50")]),
        ("UUID[]", f"'{{{ID}}}'", "ARRAY<STRING>", [ID]),
        ("INT[]", "'{1}'", "ARRAY<BIGINT>", [1]),
        ("NUMERIC(10, 2)", "1.5", "DECIMAL(10, 2)", Decimal("1.50")),
    ],
)
def test_a_domain_of_arrays_or_numbers_keeps_its_values(execute, read, base, literal, type, found):
    execute(f"CREATE DOMAIN one AS {base}")
    assert read("one", [literal], type) == [found]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"type": "ARRAY<STRING>"}, [["a", None], ["b, c"]]),
        ({"casts": {"value": "STRING"}}, ["[a, null]", "[b, c]"]),
    ],
)
def test_a_domain_of_arrays_of_an_enum_is_read_as_arrays(execute, read, more, found):
    execute("CREATE TYPE kind AS ENUM ('a', 'b, c')")
    execute("CREATE DOMAIN one AS kind[]")
    assert read("one", ["'{a, NULL}'", "ARRAY['b, c'::kind]"], **more) == found


def test_numbers_of_a_domain_are_read_in_an_array(execute, read):
    execute("CREATE DOMAIN amount AS NUMERIC(10, 2)")
    found = read("amount[]", ["'{1.5, NULL}'"], "ARRAY<DECIMAL(10, 2)>")
    assert found == [[Decimal("1.50"), None]]


def test_numbers_in_an_array_have_the_same_text_beside_each_other_number(read):
    found = read("NUMERIC[]", ["'{1, NULL}'", "'{1.55, 2}'"], casts={"value": "STRING"})
    assert found == ["[1, null]", "[1.55, 2]"]


def test_numbers_in_an_array_become_texts_with_their_own_digits(read):
    type = "ARRAY<STRING>"
    found = read("NUMERIC[]", ["'{1, NULL}'", "'{1.55}'"], type, casts={"value": type})
    assert found == [["1", None], ["1.55"]]


@pytest.mark.parametrize(
    ("sql_type", "value", "type"),
    [
        ("TIMETZ", "10:00+02", "TIME(3)"),
        ("TIMETZ[]", "{NULL,10:00+02}", "ARRAY<TIME(3)>"),
        ("TIMETZ[]", "{{10:00+02}}", "ARRAY<ARRAY<TIME(3)>>"),
    ],
)
def test_times_with_a_zone_are_refused(read, catalog, sql_type, value, type):
    with pytest.raises(lake.InvalidRequestError, match=r"'value' has times with a zone.* a view"):
        read(sql_type, [f"'{value}'", "NULL"], type)
    assert catalog.table("shop.orders").latest_snapshot() is None


def test_times_without_a_zone_are_read(read):
    assert read("TIME", ["'10:00:00.5'", "NULL"], "TIME(3)") == [time(10, 0, 0, 500000), None]


@pytest.mark.parametrize(
    ("sql_type", "type"),
    [("DATE", "DATE"), ("TIMESTAMP", "TIMESTAMP(6)"), ("TIMESTAMPTZ", "TIMESTAMP_LTZ(6)")],
)
@pytest.mark.parametrize("value", ["infinity", "-infinity"])
@pytest.mark.parametrize("is_array", [False, True])
def test_infinite_dates_and_times_are_refused(read, catalog, sql_type, type, value, is_array):
    if is_array:
        sql_type, type, literal = f"{sql_type}[]", f"ARRAY<{type}>", f"'{{{value}}}'"
    else:
        literal = f"'{value}'"
    with pytest.raises(lake.InvalidRequestError, match=rf"'{value}' is not a date .* read a view"):
        read(sql_type, [literal], type)
    assert catalog.table("shop.orders").latest_snapshot() is None


@pytest.mark.parametrize("sql_type", ["TIME", "TIMETZ"])
def test_the_end_of_the_day_is_refused(read, catalog, sql_type):
    with pytest.raises(lake.InvalidRequestError, match=r"'24:00:00.*' is not a date or time"):
        read(sql_type, ["'24:00'"], "TIME(3)")
    assert catalog.table("shop.orders").latest_snapshot() is None


def test_the_first_and_last_dates_and_times_are_read(execute, ingest, catalog):
    execute("CREATE TABLE orders (day DATE, at TIMESTAMP, days DATE[])")
    execute("INSERT INTO orders VALUES ('0001-01-01', '9999-12-31 23:59:59.999999', NULL)")
    execute("INSERT INTO orders VALUES ('9999-12-31', NULL, '{9999-12-31, NULL}')")
    columns = [("day", "DATE"), ("at", "TIMESTAMP(6)"), ("days", "ARRAY<DATE>")]
    catalog.create_table("shop.orders", columns)

    ingest()

    first, last = catalog.table("shop.orders").scan().to_arrow().to_pylist()
    assert first == {
        "day": date.min,
        "at": datetime(9999, 12, 31, 23, 59, 59, 999999),
        "days": None,
    }
    assert last == {"day": date.max, "at": None, "days": [date.max, None]}


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_becomes_only_a_float(read, ingest, catalog, name):
    numbers = ["1.5", f"'{name}'"]
    with pytest.raises(lake.InvalidRequestError, match=rf"'value' has the number {name}, which"):
        read("NUMERIC", numbers, casts={"value": "DECIMAL(10, 2)"}, table="shop.decimals")

    ingest(casts={"value": "DOUBLE"})

    assert str(values_of(catalog)) == str([1.5, float(name)])


def test_a_number_in_an_array_that_is_not_finite_becomes_only_a_float(
    execute, read, ingest, catalog
):
    with pytest.raises(lake.InvalidRequestError, match=r"'value' has the number NaN, which"):
        read("NUMERIC[]", ["'{1.5, NULL, NaN}'"], "ARRAY<DECIMAL(10, 2)>")
    catalog.drop_table("shop.orders")
    catalog.create_table("shop.orders", [("value", "ARRAY<DOUBLE>")])

    ingest()

    assert str(values_of(catalog)) == str([[1.5, None, float("NaN")]])


@pytest.mark.parametrize("is_cast", [False, True])
def test_numbers_in_an_array_become_the_nearest_double(read, is_cast):
    type = "ARRAY<DOUBLE>"
    more = {"casts": {"value": type}} if is_cast else {}
    assert read("NUMERIC[]", ["'{1.1, NULL}'", "'{}'"], type, **more) == [[1.1, None], []]


def test_a_number_in_an_array_that_a_float_would_round_is_refused(read):
    with pytest.raises(lake.InvalidRequestError, match=r"FLOAT, which cannot store 1\.1 exactly"):
        read("NUMERIC[]", ["'{1.1}'"], "ARRAY<FLOAT>")


def test_numbers_of_many_digits_become_the_nearest_double(read):
    found = read("NUMERIC", ["1e75", "1.000001"], casts={"value": "DOUBLE"})
    assert found == [1e75, 1.000001]


@pytest.mark.parametrize(
    ("sql_type", "number", "type"),
    [
        ("NUMERIC", "1e39", "FLOAT"),
        ("NUMERIC", "-1e400", "DOUBLE"),
        ("DOUBLE PRECISION", "-1e39", "FLOAT"),
    ],
)
@pytest.mark.parametrize("is_cast", [False, True])
def test_a_number_beyond_a_float_is_refused(read, sql_type, number, type, is_cast):
    more = {"casts": {"value": type}} if is_cast else {"type": type}
    message = r"'value' does not fit the type .* is too large for the type .* Change the value"
    with pytest.raises(lake.InvalidRequestError, match=message):
        read(sql_type, [number], **more)


def test_a_number_in_an_array_beyond_a_float_is_refused(read):
    with pytest.raises(lake.InvalidRequestError, match=r"'value'.* is too large for the type"):
        read("NUMERIC[]", ["'{1e39}'"], "ARRAY<FLOAT>")


def test_timestamps_are_read_in_any_zone_of_the_session(execute, read, database):
    execute(f"ALTER DATABASE {database} SET timezone TO 'Europe/Berlin'")  # +00:53:28 before 1893
    found = read("TIMESTAMPTZ", ["NULL", "'1880-01-01 12:00Z'", "'2024-07-01 12:00Z'"])
    assert found[1:] == [datetime(1880, 1, 1, 12, tzinfo=UTC), datetime(2024, 7, 1, 12, tzinfo=UTC)]


def test_timestamps_in_an_array_are_read_in_any_zone_of_the_session(execute, read, database):
    execute(f"ALTER DATABASE {database} SET timezone TO 'Europe/Berlin'")
    values = ["NULL", "'{}'", "'{NULL, 1880-01-01 12:00Z}'"]
    found = read("TIMESTAMPTZ[]", values, "ARRAY<TIMESTAMP_LTZ(6)>")
    assert found == [None, [], [None, datetime(1880, 1, 1, 12, tzinfo=UTC)]]


def test_an_integer_widens_no_int(execute, ingest, catalog):
    execute("CREATE TABLE orders (id INTEGER, small INTEGER, large BIGINT, new INTEGER)")
    execute("INSERT INTO orders VALUES (1, 70000, 3000000000, 2)")
    columns = [("id", "INT"), ("small", "SMALLINT"), ("large", "INT")]
    catalog.create_table("shop.orders", columns, primary_key=["id"], options={"bucket": "1"})

    ingest(on_schema_change="widen")

    table = catalog.table("shop.orders")
    found = {field.name: str(field.type) for field in table.scan().to_arrow().schema}
    assert found == {"id": "int32", "small": "int32", "large": "int64", "new": "int64"}
    assert [*table.scan().to_arrow().to_pylist()[0].values()] == [1, 70000, 3000000000, 2]


@pytest.mark.parametrize(
    ("sql_type", "number", "stored", "type"),
    [
        ("NUMERIC(5, -2)", "1234567", "1234600", pa.decimal128(7, 0)),
        ("NUMERIC(3, 5)", "0.00123", "0.00123", pa.decimal128(5, 5)),
    ],
)
def test_a_scale_may_be_negative_or_above_the_precision(
    read, catalog, sql_type, number, stored, type
):
    assert read(sql_type, [number]) == [Decimal(stored)]
    assert catalog.table("shop.orders").scan().to_arrow().schema.field("value").type == type


def test_a_number_with_too_many_zeros_needs_a_cast(read):
    with pytest.raises(lake.InvalidRequestError, match=r"'value' is a number .* in key 'casts'"):
        read("NUMERIC(30, -9)", ["1e30"])
