"""Tables in which rows that are written a second time are added or counted a second time."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake

COLUMNS = [("id", "BIGINT"), ("at", "BIGINT"), ("v", "BIGINT"), ("texts", "ARRAY<STRING>")]


def engine(name: str, **of_columns: str) -> dict[str, str]:
    functions = {f"fields.{column}.aggregate-function": of_columns[column] for column in of_columns}
    return {"bucket": "1", "merge-engine": name, **functions}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bucket": "1"}, True),
        (engine("first-row"), True),
        (engine("partial-update"), True),
        ({**engine("partial-update", v="sum"), "fields.at.sequence-group": "v"}, False),
        ({**engine("partial-update", v="max"), "fields.at.sequence-group": "v"}, True),
        (engine("aggregation"), True),
        (engine("aggregation", v="min"), True),
        (engine("aggregation", v="product"), False),
        (
            {
                **engine("aggregation", texts="last_value"),
                "fields.default-aggregate-function": "sum",
            },
            False,
        ),
        (engine("aggregation", texts="collect"), False),
        ({**engine("aggregation", texts="collect"), "fields.texts.distinct": "true"}, True),
    ],
    ids=str,
)
def test_a_paimon_table_with_a_key_replaces_repeated_rows_unless_it_adds_values(
    tmp_path, options, expected
):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"], options=options)
    row = {"id": [1], "at": [1], "v": [3], "texts": [["a"]]}
    found = []
    for _ in range(2):
        table.write(pa.table(row))
        table.compact(strategy="full")
        found.append(table.scan().to_arrow())
    assert table.replaces_repeated_rows is expected is (found[0] == found[1])


@pytest.mark.parametrize(
    ("format", "options", "expected"),
    [
        ("iceberg", {}, False),
        ("mixed", {}, True),
        ("mixed", {"write.upsert.enabled": "false"}, False),
        ("mixed", {"lake.version-field": "at"}, True),
    ],
    ids=str,
)
def test_a_mixed_table_replaces_repeated_rows_unless_its_property_is_false(
    tmp_path, format, options, expected
):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    columns = COLUMNS[:3]
    table = catalog.create_table(
        "db.t", columns, format=format, primary_key=["id"], options=options
    )
    for _ in range(2):
        table.write(pa.table({"id": [1], "at": [1], "v": [3]}))
    assert table.replaces_repeated_rows is expected is (table.scan().count() == 1)


def test_a_paimon_table_without_a_key_adds_repeated_rows(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("db")
    assert not catalog.create_table("db.t", COLUMNS).replaces_repeated_rows
