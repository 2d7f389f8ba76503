"""Messages of Debezium, Canal and Maxwell become the table's rows, in order."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.cdc.key_only_deletes import require_sequences
from spark_jobs.ingest import run
from tests.unit.spark_jobs.messages import ONE_STORY, canal, debezium, item, maxwell


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def stock(catalog):
    return catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("pieces", "INT")],
        primary_key=["sku"],
        options={"bucket": "1"},
    )


@pytest.fixture
def ingest(tmp_path):
    """Ingest some messages into ``shop.stock``."""

    def act(form, *messages, **more):
        path = tmp_path / "messages.json"
        lines = (each if isinstance(each, str) else json.dumps(each) for each in messages)
        path.write_text("\n".join(lines) + "\n")
        request = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.stock",
            "source": str(path),
            "format": f"{form}-json",
            **more,
        }
        return run(request)

    return act


def rows(catalog, name="shop.stock"):
    found = catalog.table(name).scan().to_arrow().to_pylist()
    return sorted((tuple(each.values()) for each in found), key=str)


@pytest.mark.parametrize("form", ONE_STORY)
def test_rows_are_inserted_updated_moved_and_deleted(catalog, stock, ingest, form):
    result = ingest(form, *ONE_STORY[form])
    assert (result["skipped"], result["snapshot_id"]) == (False, 1)
    assert rows(catalog) == [("date", 9), ("pear", 5)]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_an_old_key_may_look_like_a_time(catalog, stock, ingest, form):
    """Arrow then infers another type for the old keys than for the new ones."""
    new, old = {"sku": "pear", "pieces": "5"}, {"sku": "2024-01-31"}
    inserted, updated = {
        "canal": (canal("INSERT", new | old), canal("UPDATE", new, old=[old])),
        "maxwell": (
            maxwell("insert", item(old["sku"], 5)),
            maxwell("update", item("pear", 5), old),
        ),
    }[form]
    ingest(form, inserted)
    ingest(form, updated)
    assert rows(catalog) == [("pear", 5)]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize("keyed", [True, False])
def test_a_column_may_be_null_in_every_row_but_the_old_ones(catalog, ingest, form, keyed):
    columns = [("sku", "STRING"), ("pieces", "INT"), ("on_sale", "BOOLEAN")]
    more = {"primary_key": ["sku"], "options": {"bucket": "1"}} if keyed else {}
    catalog.create_table("shop.stock", columns, **more)
    new, old = {"sku": "pear", "pieces": None, "on_sale": None}, {"pieces": "5", "on_sale": "1"}
    types = {"sku": "varchar(20)", "pieces": "int", "on_sale": "tinyint(1)"}
    message = {
        "canal": canal("UPDATE", new, old=[old], types=types),
        "maxwell": maxwell("update", new, old={"pieces": 5, "on_sale": 1}),
    }[form]
    ingest(form, message)
    assert rows(catalog) == [("pear", None, None)]


@pytest.mark.parametrize("form", ONE_STORY)
def test_a_table_is_made_of_what_they_say(catalog, ingest, form):
    ingest(
        form,
        *ONE_STORY[form],
        create=True,
        primary_key=["sku"],
        table_options={"bucket": "1"},
    )
    assert rows(catalog) == [("date", 9), ("pear", 5)]
    assert catalog.table("shop.stock").schema.primary_keys == ("sku",)


def test_the_same_run_publishes_once(catalog, stock, ingest):
    who = {"commit_user": "run", "commit_identifier": 1}
    results = [ingest("maxwell", *ONE_STORY["maxwell"], **who) for _ in "ab"]
    assert [each["replayed"] for each in results] == [False, True]
    assert len(stock.snapshots()) == 1


def test_the_last_of_many_in_one_batch_wins(catalog, stock, ingest):
    ingest("debezium", *(debezium("c", after=item("pear", number)) for number in range(1000)))
    assert rows(catalog) == [("pear", 999)]


def test_a_new_column_is_added_before_the_rows(catalog, stock, ingest):
    ingest(
        "maxwell",
        maxwell("insert", item("pear", 1)),
        maxwell("insert", {**item("plum", 2), "note": "2024-01-31"}),
    )
    assert rows(catalog) == [("pear", 1, None), ("plum", 2, "2024-01-31")]


def test_a_column_becomes_as_wide_as_its_values(catalog, stock, ingest):
    ingest("maxwell", maxwell("insert", item("pear", 1 << 40)))
    assert rows(catalog) == [("pear", 1 << 40)]
    assert [str(field.type.name) for field in catalog.table("shop.stock").schema.fields] == [
        "VARCHAR",
        "BIGINT",
    ]


def test_a_name_with_a_dot_is_one_column(catalog, ingest):
    columns = [("sku", "STRING"), ("a.b", "INT")]
    made = {"primary_key": ["sku"], "options": {"bucket": "1"}}
    catalog.create_table("shop.stock", columns, **made)
    ingest("maxwell", maxwell("insert", {"sku": "pear", "a.b": 1 << 40, "c.d": 1}))
    assert catalog.table("shop.stock").schema.column_names == ["sku", "a.b", "c.d"]
    assert rows(catalog) == [("pear", 1 << 40, 1)]


def test_a_field_that_is_new_inside_a_column_comes_to_the_table_too(catalog, ingest):
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("place", "ROW<hall INT, shelves ARRAY<ROW<number INT>>>")],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    shelf = {"number": 7, "label": "top"}
    place = {"hall": 1, "shelves": [shelf], "town": {"name": "Oslo", "zip": None}}
    ingest("maxwell", maxwell("insert", {"sku": "pear", "place": place}))
    told = {"hall": 1, "shelves": [shelf], "town": {"name": "Oslo"}}
    assert rows(catalog) == [("pear", told)]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([["red"], [None]], id="a text elsewhere"),
        pytest.param([], id="no other element"),
    ],
)
def test_a_list_may_begin_with_nulls(catalog, ingest, more):
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("tags", "ARRAY<STRING>")],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    given = [[None, None, "blue"], *more] if more else [[None, None], []]
    messages = [debezium("c", after={"sku": str(n), "tags": t}) for n, t in enumerate(given)]
    ingest("debezium", *messages)
    assert rows(catalog) == [(str(number), tags) for number, tags in enumerate(given)]


@pytest.mark.parametrize("old", [[None, {"pieces": "1"}], [{"pieces": "1"}, None], [None, None]])
def test_canal_may_have_no_old_row_beside_a_new_one(catalog, stock, ingest, old):
    ingest("canal", canal("UPDATE", item("pear", "3"), item("plum", "4"), old=old))
    assert rows(catalog) == [("pear", 3), ("plum", 4)]


@pytest.mark.parametrize("tags", [{"colours": [], "size": None}, {"colours": []}, {}, None])
def test_nested_values_that_show_no_type_are_taken_where_the_table_knows_it(catalog, ingest, tags):
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("tags", "ROW<colours ARRAY<STRING>, size INT>")],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    ingest("maxwell", maxwell("insert", {"sku": "pear", "tags": tags}))
    whole = None if tags is None else {"colours": None, "size": None} | tags
    assert rows(catalog) == [("pear", whole)]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("value", [2**64 - 1, {"codes": [2**64 - 1]}])
def test_no_column_is_made_of_numbers_that_a_double_does_not_keep(catalog, ingest, there, value):
    columns = [("sku", "STRING")]
    if there:
        catalog.create_table("shop.stock", columns, primary_key=["sku"], options={"bucket": "1"})
    message = maxwell("insert", {"sku": "pear", "code": value})
    made = {"create": True, "primary_key": ["sku"], "table_options": {"bucket": "1"}}
    with pytest.raises(lake.InvalidRequestError, match=r"near 1\.8446744073709552e\+19"):
        ingest("maxwell", message, **({} if there else made))


@pytest.mark.parametrize("type", ["DECIMAL(20, 0)", "DOUBLE"])
def test_a_column_that_is_there_takes_such_numbers(catalog, ingest, type):
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("code", type)],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    ingest("maxwell", maxwell("insert", {"sku": "pear", "code": 2**64 - 1}))
    [(_, code)] = rows(catalog)
    assert code == (2**64 - 1 if type != "DOUBLE" else float(2**64 - 1))


def test_a_declared_type_widens_the_column(catalog, stock, ingest):
    types = {"sku": "varchar(20)", "pieces": "decimal(12,2)"}
    ingest("canal", canal("INSERT", item("pear", "1.50"), types=types))
    assert rows(catalog) == [("pear", Decimal("1.50"))]


@pytest.mark.parametrize(("type", "value"), [("TINYINT", 1), ("BOOLEAN", True)])
def test_a_tinyint_of_one_digit_is_what_the_table_takes_it_for(catalog, ingest, type, value):
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("on_sale", type)],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    types = {"sku": "varchar(20)", "on_sale": "tinyint(1)"}
    ingest("canal", canal("INSERT", {"sku": "pear", "on_sale": "1"}, types=types))
    assert rows(catalog) == [("pear", value)]


def test_every_difference_is_named_and_nothing_changes(catalog, stock, ingest):
    schema_before = catalog.table("shop.stock").schema
    with pytest.raises(lake.InvalidRequestError) as refused:
        ingest("maxwell", maxwell("insert", {"sku": 7, "pieces": 1.5, "new": 1}))
    said = str(refused.value)
    assert "column 'sku' is STRING NOT NULL" not in said
    assert "column 'sku' is STRING in the table and written as BIGINT in the source" in said
    assert "column 'pieces' is INT in the table and written as DOUBLE in the source" in said
    assert catalog.table("shop.stock").schema == schema_before
    assert stock.latest_snapshot() is None


def test_a_new_column_that_differs_only_in_case_is_refused(catalog, stock, ingest):
    said = r"'PIECES' differs only in case from column 'pieces' of the table"
    with pytest.raises(lake.InvalidRequestError, match=said):
        ingest("maxwell", maxwell("insert", {"sku": "pear", "PIECES": 1, "new": 1}))
    assert catalog.table("shop.stock").schema == stock.schema
    assert stock.latest_snapshot() is None


def test_columns_that_differ_only_in_case_may_arrive_together(catalog, stock, ingest):
    ingest("maxwell", maxwell("insert", item("pear", 1) | {"PIECES": 2}))
    assert rows(catalog) == [("pear", 1, 2)]


def test_messages_without_a_key_leave_no_column_behind(catalog, stock, ingest):
    with pytest.raises(lake.InvalidRequestError, match=r"'sku' .* have the columns SKU, Pieces"):
        ingest("maxwell", maxwell("insert", {"SKU": "pear", "Pieces": 1}))
    assert catalog.table("shop.stock").schema == stock.schema


def field(name, kind, semantic=None, **parameters):
    said = {"field": name, "type": kind, "optional": True}
    said |= {"name": semantic} if semantic else {}
    return said | ({"parameters": parameters} if parameters else {})


def test_debezium_says_what_its_numbers_mean(catalog, ingest):
    connect = "org.apache.kafka.connect.data"
    schema = [
        field("sku", "string"),
        field("day", "int32", "io.debezium.time.Date"),
        field("at", "int64", "io.debezium.time.MicroTimestamp"),
        field("price", "bytes", f"{connect}.Decimal", scale="2"),
        field("raw", "bytes"),
        field("small", "int16"),
    ]
    rows_given = [
        ("a", 0, 1, "AA==", "", 1),
        ("b", 19753, 1706695200123456, "ZA==", "/+8=", -3),
        ("c", None, None, "/w==", None, None),
        ("d", -1, -1, "AVVV", "AAAA", 0),
        ("e", 1, 0, None, "TQ==", 0),
    ]
    names = [each["field"] for each in schema]
    messages = [
        debezium("c", after=dict(zip(names, row, strict=True)), schema=schema) for row in rows_given
    ]
    ingest("debezium", *messages, create=True, primary_key=["sku"], table_options={"bucket": "1"})
    assert rows(catalog) == [
        ("a", date(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 0, 1), Decimal("0.00"), b"", 1),
        (
            "b",
            date(2024, 1, 31),
            datetime(2024, 1, 31, 10, 0, 0, 123456),
            Decimal("1.00"),
            b"\xff\xef",
            -3,
        ),
        ("c", None, None, Decimal("-0.01"), None, None),
        (
            "d",
            date(1969, 12, 31),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            Decimal("873.81"),
            b"\0\0\0",
            0,
        ),
        ("e", date(1970, 1, 2), datetime(1970, 1, 1), None, b"M", 0),
    ]


def test_a_schema_is_read_wherever_it_stands_in_the_message(catalog, ingest):
    schema = [field("sku", "string"), field("day", "int32", "io.debezium.time.Date")]
    said = debezium("c", after={"sku": "a", "day": 1}, schema=schema)
    ingest(
        "debezium",
        json.dumps(said, sort_keys=True),
        create=True,
        primary_key=["sku"],
        table_options={"bucket": "1"},
    )
    assert rows(catalog) == [("a", date(1970, 1, 2))]


def test_a_decimal_comes_as_declared_text_too(catalog, ingest):
    """Debezium's 'decimal.handling.mode' = 'string'."""
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("price", "DECIMAL(20, 2)")],
        primary_key=["sku"],
        options={"bucket": "1"},
    )
    schema = [field("sku", "string"), field("price", "string")]
    values = {"sku": "a", "price": "123456789012345678.90"}
    ingest("debezium", debezium("c", after=values, schema=schema))
    assert rows(catalog) == [("a", Decimal("123456789012345678.90"))]


def test_a_year_is_a_number_and_what_has_no_counterpart_a_text(catalog, ingest):
    schema = [
        field("sku", "string"),
        field("made", "int32", "io.debezium.time.Year"),
        field("opens", "string", "io.debezium.time.ZonedTime"),
    ]
    values = {"sku": "a", "made": 2024, "opens": "08:30:00+01:00"}
    made = {"create": True, "primary_key": ["sku"], "table_options": {"bucket": "1"}}
    ingest("debezium", debezium("c", after=values, schema=schema), **made)
    assert rows(catalog) == [("a", 2024, "08:30:00+01:00")]


@pytest.mark.parametrize(
    ("semantic", "setting"),
    [("MicroTime", "'time.precision.mode' to 'connect'"), ("MicroDuration", "'interval.handling")],
)
def test_a_time_that_is_not_read_says_which_setting_helps(stock, ingest, semantic, setting):
    schema = [field("sku", "string"), field("at", "int64", f"io.debezium.time.{semantic}")]
    with pytest.raises(lake.UnsupportedError, match=rf"\.jsonl?: .*{setting}"):
        ingest("debezium", debezium("c", after={"sku": "a", "at": 1}, schema=schema))


def test_a_type_that_changes_within_a_batch_is_named_as_people_write_it(stock, ingest):
    messages = [
        debezium("c", after={"sku": "a", "pieces": value}, schema=[field("pieces", kind)])
        for value, kind in ((1, "int32"), (2, "string"))
    ]
    with pytest.raises(lake.InvalidRequestError, match="changes from INT to STRING within"):
        ingest("debezium", *messages)


def test_an_encoding_that_changes_within_a_batch_is_named(stock, ingest):
    messages = [
        debezium("c", after={"sku": "a", "at": 1}, schema=[field("at", "int64", semantic)])
        for semantic in ("io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp")
    ]
    milli, micro = (rf"\(as {unit}seconds since 1970\)" for unit in ("milli", "micro"))
    with pytest.raises(lake.InvalidRequestError, match=rf" \S+ {milli} to \S+ {micro} within"):
        ingest("debezium", *messages)


@pytest.mark.parametrize(
    "mark", ["__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]
)
def test_a_value_that_was_not_sent_takes_the_place_of_none(catalog, ingest, mark):
    columns = [("sku", "STRING"), ("note", "STRING" if mark.startswith("_") else "BYTES")]
    made = {"primary_key": ["sku"], "options": {"bucket": "1"}}
    table = catalog.create_table("shop.stock", columns, **made)
    one, two = {"sku": "pear", "note": "bG9uZw=="}, {"sku": "pear", "note": mark}
    with pytest.raises(lake.InvalidRequestError, match=r"value of column 'note'.*REPLICA IDENTITY"):
        ingest("debezium", debezium("c", after=one), debezium("u", before=one, after=two))
    assert table.latest_snapshot() is None


MARK = "__debezium_unavailable_value"


@pytest.mark.parametrize(
    ("kind", "full", "mark"),
    [
        (pa.list_(pa.string()), ["a"], [MARK]),
        (pa.list_(pa.binary()), ["bG9uZw=="], [base64.b64encode(MARK.encode()).decode()]),
        (pa.list_(pa.string()), ["a"], ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),  # of uuid[]
        (pa.list_(pa.int32()), [1, None], [*MARK.encode()]),
        (pa.list_(pa.int64()), [1], [*MARK.encode()]),
        (pa.struct([("a", pa.string())]), {"a": "b"}, {MARK: MARK}),  # of hstore
        (pa.map_(pa.string(), pa.string()), None, {MARK: MARK}),
        (pa.string(), '{"a":"b"}', f'{{"{MARK}":"{MARK}"}}'),  # of hstore as JSON
    ],
)
def test_a_nested_value_that_was_not_sent_is_not_stored(catalog, ingest, kind, full, mark):
    columns = pa.schema([pa.field("sku", pa.string(), nullable=False), ("note", kind)])
    made = {"primary_key": ["sku"], "options": {"bucket": "1"}}
    table = catalog.create_table("shop.stock", columns, **made)
    schema_before = table.schema
    first = {"sku": "pear", "note": full}
    with pytest.raises(lake.InvalidRequestError, match=r"value of column 'note'.*REPLICA IDENTITY"):
        ingest("debezium", debezium("c", after=first), debezium("u", after=first | {"note": mark}))
    assert catalog.table("shop.stock").schema == schema_before
    assert table.latest_snapshot() is None


def test_numbers_that_only_resemble_a_value_that_was_not_sent_are_stored(catalog, ingest):
    columns = pa.schema([pa.field("sku", pa.string(), nullable=False), ("n", pa.list_(pa.int64()))])
    made = {"primary_key": ["sku"], "options": {"bucket": "1"}}
    catalog.create_table("shop.stock", columns, **made)
    numbers = [*MARK.encode()]
    found = [[], None, numbers[:-1], [*numbers, 1], [*numbers[:-1], None], numbers[::-1]]
    ingest(
        "debezium",
        *(debezium("u", after={"sku": str(n), "n": each}) for n, each in enumerate(found)),
    )
    assert [each for _, each in rows(catalog)] == found


@pytest.mark.parametrize("size", range(0, 17))
def test_decimals_of_any_length_are_what_their_bytes_say(size):
    from spark_jobs.cdc.base64_columns import decimals_of

    numbers = [0, 1, -1, (1 << (8 * size - 1)) - 1, -(1 << (8 * size - 1))] if size else [0]
    numbers = [each for each in numbers if abs(each) < 10**38]
    texts = [base64.b64encode(each.to_bytes(size, "big", signed=True)).decode() for each in numbers]
    found = decimals_of(pa.array([*texts, None]).slice(0), 0, "price")
    assert found.to_pylist() == [*map(Decimal, numbers), None]
    assert decimals_of(pa.array(["x", *texts]).slice(1), 0, "price").to_pylist() == [
        *map(Decimal, numbers)
    ]


@pytest.mark.parametrize(
    ("form", "message", "words"),
    [
        ("debezium", debezium("t"), "truncate message"),
        ("debezium", {"a": 1}, "without 'op'"),
        ("debezium", debezium("x", after=item("a", 1)), "of op 'x', which is not supported"),
        ("debezium", debezium("d"), "without its row"),
        ("debezium", debezium("u", before=item("a", 1)), "without its row"),
        ("canal", canal("TRUNCATE", ddl=True), "TRUNCATE message"),
        (
            "canal",
            canal("UPDATE", item("a", "1"), old=[{}, {}]),
            "a different number of old and new rows",
        ),
        ("canal", canal("MERGE", item("a", "1")), "of type 'MERGE', which is not supported"),
        ("canal", canal("insert", item("a", "1")), "of type 'insert', which is not supported"),
        ("canal", {"a": 1}, "without 'type'"),
        ("maxwell", maxwell("drop", {}), "of type 'drop'"),
        ("maxwell", {"a": 1}, "without 'type'"),
        ("maxwell", "[1]", "a JSON object"),
        ("maxwell", '{"a": 1', "a JSON object"),
        ("maxwell", '{"a": }', "cannot read"),
    ],
)
def test_what_cannot_be_meant_is_refused(stock, ingest, form, message, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        ingest(form, message)
    assert stock.latest_snapshot() is None


@pytest.mark.parametrize("text", ["abc", "ab!=", "a=bc", "ab=c", "====", "=abc"])
def test_text_that_is_not_base64_is_refused(text):
    from spark_jobs.cdc.base64_columns import decoded

    with pytest.raises(lake.InvalidRequestError, match="'note' has a value that is not base64"):
        decoded(pa.array(["YQ==", text, None, "YWI=", "YWJj", ""]), "note")


def test_base64_texts_are_decoded():
    from spark_jobs.cdc.base64_columns import decoded

    found = decoded(pa.array(["YQ==", None, "YWI=", "YWJj", ""]), "note")
    assert found.to_pylist() == [b"a", None, b"ab", b"abc", b""]


def test_messages_of_several_tables_are_told_apart(catalog, stock, ingest):
    messages = [
        debezium("c", after=item("pear", 1)),
        debezium("c", after=item("no", 2), table="other"),
    ]
    with pytest.raises(
        lake.InvalidRequestError, match=r"shop\.other, shop\.stock\): choose one with"
    ):
        ingest("debezium", *messages)
    ingest("debezium", *messages, messages_of="shop.stock")
    assert rows(catalog) == [("pear", 1)]


def test_a_warning_names_the_tables_if_no_message_is_of_the_chosen_one(
    catalog, stock, ingest, caplog
):
    message = debezium("c", after=item("pear", 1))
    message["source"] = {"db": "shop", "schema": "public", "table": "stock"}
    ingest("debezium", message, messages_of="public.stock")
    assert "'public.stock' (key 'messages_of'), so all were skipped" in caplog.text
    assert "tables of the messages are 'shop.public.stock': set" in caplog.text

    caplog.clear()
    ingest("debezium", message, messages_of="shop.public.stock")
    assert (rows(catalog), caplog.text) == ([("pear", 1)], "")


@pytest.mark.parametrize("named", [True, False])
def test_a_warning_reports_messages_without_a_table(catalog, stock, ingest, caplog, named):
    nameless = {"type": "insert", "data": item("no", 2)}
    others = [maxwell("insert", item("pear", 1))] if named else []
    ingest("maxwell", *others, nameless, messages_of="shop.stock")
    assert rows(catalog) == ([("pear", 1)] if named else [])
    assert "skipping messages that do not name their source table" in caplog.text
    assert "no message is of" not in caplog.text


def test_messages_of_several_tables_are_told_apart_file_by_file_too(catalog, stock, tmp_path):
    for name in ("other", "stock"):
        message = debezium("c", after=item(name, 1), table=name)
        (tmp_path / f"{name}.json").write_text(json.dumps(message) + "\n")
    request = {
        "warehouse": str(tmp_path / "warehouse"),
        "table": "shop.stock",
        "source": str(tmp_path / "*.json"),
        "format": "debezium-json",
    }
    with pytest.raises(
        lake.InvalidRequestError, match=r"shop\.other, shop\.stock\): choose one with"
    ):
        run(request)
    assert stock.latest_snapshot() is None
    run({**request, "messages_of": "shop.stock"})
    assert rows(catalog) == [("stock", 1)]


def test_the_columns_of_every_file_count(catalog, stock, tmp_path):
    found = [
        maxwell("insert", {**item("pear", 1 << 40), "note": "x"}),
        maxwell("insert", {**item("plum", 2), "weight": 0.5}),
    ]
    for number, message in enumerate(found):
        (tmp_path / f"messages-{number}.json").write_text(json.dumps(message) + "\n")

    run(
        {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.stock",
            "source": str(tmp_path / "messages-*.json"),
            "format": "maxwell-json",
        }
    )

    assert rows(catalog) == [("pear", 1 << 40, "x", None), ("plum", 2, None, 0.5)]


@pytest.mark.parametrize("types_said", [True, False])
def test_what_messages_of_another_table_say_of_columns_is_none_of_ours(
    catalog, stock, ingest, types_said
):
    ours = [field("sku", "string"), field("pieces", "int32")] if types_said else None
    theirs = [field("sku", "int32"), field("weight", "double")] if types_said else None
    messages = [
        debezium("c", after=item("pear", 1), schema=ours),
        debezium("c", after={"sku": 7, "weight": 0.5}, table="other", schema=theirs),
    ]
    before = catalog.table("shop.stock").schema
    with pytest.raises(
        lake.InvalidRequestError, match=r"shop\.other, shop\.stock\): choose one with"
    ):
        ingest("debezium", *messages)
    ingest("debezium", *messages, messages_of="shop.stock")
    assert rows(catalog) == [("pear", 1)]
    assert catalog.table("shop.stock").schema == before


@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_a_table_that_could_not_be_read_stops_nobody_who_wants_another(
    catalog, stock, ingest, form
):
    ours, theirs = {
        "canal": (
            canal("INSERT", item("pear", "1")),
            canal("INSERT", {"place": "?"}, types={"place": "geometry"}),
        ),
        "maxwell": (maxwell("insert", item("pear", 1)), maxwell("insert", {"pieces": "many"})),
    }[form]
    ingest(form, ours, theirs | {"table": "other"}, ours, messages_of="shop.stock")
    assert rows(catalog) == [("pear", 1)]


def test_messages_of_several_tables_have_a_line_each(stock, ingest):
    two = json.dumps(debezium("c", after=item("pear", 1))) * 2
    with pytest.raises(lake.InvalidRequestError, match="a block of 1 line has 2 messages"):
        ingest("debezium", two, messages_of="shop.stock")


def test_another_table_that_was_truncated_stops_nobody(catalog, stock, ingest):
    messages = [debezium("c", after=item("pear", 1)), debezium("t", table="other")]
    ingest("debezium", *messages, messages_of="shop.stock")
    assert rows(catalog) == [("pear", 1)]


def test_an_aggregate_wants_the_whole_row_before(catalog, ingest):
    catalog.create_table(
        "shop.stock",
        [("sku", "STRING"), ("pieces", "INT")],
        primary_key=["sku"],
        options={
            "bucket": "1",
            "merge-engine": "aggregation",
            "fields.pieces.aggregate-function": "sum",
        },
    )
    with pytest.raises(lake.UnsupportedError, match="aggregates"):
        ingest("maxwell", *ONE_STORY["maxwell"])
    ingest("debezium", *ONE_STORY["debezium"])
    assert ("pear", 5) in rows(catalog), "1, taken back, and 5"


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_an_aggregate_of_any_engine_wants_to_know_what_it_takes_back(catalog, ingest, engine):
    options = {"bucket": "1", "merge-engine": engine, "fields.pieces.aggregate-function": "sum"}
    if engine == "partial-update":
        options["fields.version.sequence-group"] = "pieces"
    else:
        options["fields.version.aggregate-function"] = "last_value"
    columns = [("sku", "STRING"), ("pieces", "INT"), ("version", "INT")]
    catalog.create_table("shop.stock", columns, primary_key=["sku"], options=options)

    one, two = item("pear", 5) | {"version": 1}, item("pear", 7) | {"version": 2}
    with pytest.raises(lake.UnsupportedError, match="aggregates"):
        ingest("maxwell", maxwell("insert", one), maxwell("update", two, old=one))
    with pytest.raises(lake.InvalidRequestError, match="REPLICA IDENTITY FULL"):
        ingest("debezium", debezium("c", after=one), debezium("u", after=two))
    ingest("debezium", debezium("c", after=one), debezium("u", before=one, after=two))
    assert rows(catalog) == [("pear", 7, 2)]


def test_the_last_value_of_a_group_takes_messages_of_every_format(catalog, ingest):
    options = {
        "bucket": "1",
        "merge-engine": "partial-update",
        "fields.version.sequence-group": "pieces",
        "fields.pieces.aggregate-function": "last_value",
    }
    columns = [("sku", "STRING"), ("pieces", "INT"), ("version", "INT")]
    catalog.create_table("shop.stock", columns, primary_key=["sku"], options=options)
    one, two = item("pear", 5) | {"version": 1}, item("pear", 7) | {"version": 2}
    ingest("maxwell", maxwell("insert", one), maxwell("update", two, old={"pieces": 5}))
    assert rows(catalog) == [("pear", 7, 2)]


@pytest.fixture
def versioned(catalog):
    """Create ``shop.stock`` with a column ``version``, which is its ``sequence.field``."""

    def make(**options):
        return catalog.create_table(
            "shop.stock",
            [("sku", "STRING"), ("pieces", "INT"), ("version", "INT")],
            primary_key=["sku"],
            options={"bucket": "1", "sequence.field": "version", **options},
        )

    return make


def version(sku, pieces, version):
    return item(sku, pieces) | {"version": version}


ONLY_KEY = version("pear", None, None)
LOST = {
    "debezium": debezium("d", before=ONLY_KEY),
    "maxwell": maxwell("delete", {"sku": "pear"}),
    "canal": canal("DELETE", {"sku": "pear"}, types={"sku": "varchar(20)"}),
    "moved": debezium("u", before=ONLY_KEY, after=version("plum", 2, 2)),
}


@pytest.mark.parametrize(
    "more", [{}, {"sequence.field.sort-order": "descending"}, {"sequence.field": "version,pieces"}]
)
@pytest.mark.parametrize("case", LOST)
def test_a_delete_without_its_sequence_is_refused(catalog, versioned, ingest, case, more):
    versioned(**more)
    ingest("debezium", debezium("c", after=version("pear", 1, 1)))
    form = "debezium" if case == "moved" else case
    others = [maxwell("insert", version("fig", 1, 1))] if form == "maxwell" else []
    with pytest.raises(lake.InvalidRequestError, match=r"only the key.*REPLICA IDENTITY FULL"):
        ingest(form, *others, LOST[case])
    assert rows(catalog) == [("pear", 1, 1)]


def test_whole_rows_are_deleted_with_and_without_a_sequence(catalog, versioned, ingest):
    versioned()
    found = [version("pear", 1, None), version("fig", 1, 7), version("plum", 1, 8)]
    ingest("debezium", *(debezium("c", after=each) for each in found))
    ingest("debezium", *(debezium("d", before=each) for each in found[:2]))
    assert rows(catalog) == [("plum", 1, 8)]


def test_an_update_within_a_key_needs_only_the_key_before(catalog, versioned, ingest):
    versioned()
    after = version("pear", 2, 2)
    ingest("debezium", debezium("c", after=version("pear", 1, 1)))
    ingest("debezium", debezium("u", before=ONLY_KEY, after=after), debezium("c", after=after))
    assert rows(catalog) == [("pear", 2, 2)]


def test_an_ignored_delete_needs_no_sequence(catalog, versioned, ingest):
    versioned(**{"ignore-delete": "true"})
    ingest("debezium", debezium("c", after=version("pear", 1, 1)), LOST["debezium"])
    assert rows(catalog) == [("pear", 1, 1)]


def test_moved_rows_that_the_table_keeps_need_no_sequence(catalog, versioned, ingest):
    versioned(**{"ignore-update-before": "true"})
    ingest("debezium", debezium("c", after=version("pear", 1, 1)), LOST["moved"])
    assert rows(catalog) == [("pear", 1, 1), ("plum", 2, 2)]


def test_a_default_is_the_sequence_of_a_delete_with_only_the_key(versioned):
    schema = versioned().schema
    sku, pieces, version = schema.fields
    rows = {"sku": pa.array(["pear"])}
    with pytest.raises(lake.InvalidRequestError, match=r"m\.json has a delete with only the key"):
        require_sequences(schema, pa.array(["-D"]), rows, "m.json")
    with_default = replace(schema, fields=(sku, pieces, replace(version, default_value="9")))
    require_sequences(with_default, pa.array(["-D"]), rows, "m.json")


@pytest.mark.parametrize("fields", ["", "sku"])
def test_a_delete_with_only_the_key_needs_no_sequence_of_its_key(
    catalog, versioned, ingest, fields
):
    versioned(**{"sequence.field": fields})
    ingest("debezium", debezium("c", after=version("pear", 1, 1)), LOST["debezium"])
    assert rows(catalog) == []


def test_a_table_without_a_key_takes_inserts_alone(catalog, ingest):
    catalog.create_table("shop.stock", [("sku", "STRING"), ("pieces", "INT")])
    ingest("maxwell", maxwell("insert", item("pear", 1)))
    with pytest.raises(lake.InvalidRequestError):
        ingest("maxwell", maxwell("delete", item("pear", 1)))
    assert rows(catalog) == [("pear", 1)]


def test_a_time_of_day_is_a_text(catalog, ingest):
    columns = [("sku", "STRING"), ("opens", "TIME(3)")]
    made = {"primary_key": ["sku"], "options": {"bucket": "1"}}
    catalog.create_table("shop.stock", columns, **made)
    ingest("maxwell", maxwell("insert", {"sku": "pear", "opens": "08:30:00"}))
    assert rows(catalog) == [("pear", time(8, 30))]


def test_packed_messages_are_read(catalog, stock, ingest, tmp_path):
    lines = "\n".join(json.dumps(each) for each in ONE_STORY["maxwell"])
    packed = tmp_path / "part-0.json.gz"
    packed.write_bytes(gzip.compress(lines.encode()))
    ingest("maxwell", source=str(packed))
    assert rows(catalog) == [("date", 9), ("pear", 5)]


def test_blocks_end_with_lines(catalog, stock, ingest, monkeypatch):
    monkeypatch.setattr("lakeformat.files.foreign.json_lines._BLOCK_BYTES", 100)
    ingest("debezium", *ONE_STORY["debezium"])
    assert rows(catalog) == [("date", 9), ("pear", 5)]


@pytest.mark.parametrize("form", ["debezium", "maxwell"])
def test_a_message_without_a_table_does_not_hide_the_messages_of_others(
    catalog, stock, ingest, form
):
    message, nameless = {
        "debezium": (
            debezium("c", after=item("pear", 1)),
            {"op": "c", "after": item("no", 2)},
        ),
        "maxwell": (
            maxwell("insert", item("pear", 1)),
            {"type": "insert", "data": item("no", 2)},
        ),
    }[form]
    ingest(form, message, nameless, messages_of="shop.stock")
    assert rows(catalog) == [("pear", 1)]


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_a_large_whole_number_is_not_rounded_by_a_fraction_in_another_block(
    catalog, stock, ingest, monkeypatch, exists, is_nested
):
    """Each block alone has exact numbers; only together they make the column a DOUBLE."""
    monkeypatch.setattr("lakeformat.files.foreign.json_lines._BLOCK_BYTES", 100)
    weights = [2**53 + 1, *[2] * 9, 1.5]
    messages = [
        {**item(f"pear{number}", 1), "weight": [{"kg": weight}] if is_nested else weight}
        for number, weight in enumerate(weights)
    ]
    how = {}
    if not exists:
        catalog.drop_table("shop.stock")
        how = {"create": True, "primary_key": ["sku"]}

    with pytest.raises(lake.InvalidRequestError, match=r"'weight.*near 9007199254740993"):
        ingest("maxwell", *(maxwell("insert", each) for each in messages), **how)
