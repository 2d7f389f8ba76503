"""Change messages that a job reads as plain rows are recognised, and the error names the format."""

from __future__ import annotations

import json

import pytest

import lakeformat as lake
from lakeformat.files.foreign.change_messages import message_format
from spark_jobs import ingest
from tests.unit.spark_jobs.messages import canal, debezium, item, maxwell

PEAR = item("pear", 1)
MESSAGES = {
    "debezium-json": debezium("c", after=PEAR),
    "debezium-json with schema": debezium("c", after=PEAR, schema=[]),
    "canal-json": canal("INSERT", PEAR),
    "maxwell-json": maxwell("insert", PEAR),
}


@pytest.mark.parametrize("table_format", ["paimon", "iceberg"])
@pytest.mark.parametrize("messages", MESSAGES)
def test_messages_that_are_read_as_rows_are_recognised(tmp_path, messages, table_format):
    catalog = lake.open_catalog(str(tmp_path / "lake"), format=table_format)
    catalog.create_database("shop")
    catalog.create_table("shop.stock", [("sku", "STRING"), ("pieces", "INT")])
    (tmp_path / "rows.json").write_text(json.dumps(MESSAGES[messages]))
    request = {
        "warehouse": tmp_path / "lake",
        "table": "shop.stock",
        "source": tmp_path / "rows.json",
        "catalog_options": {} if table_format == "paimon" else {"format": "iceberg"},
    }
    told = f"with format='{messages.split()[0]}' the job applies them"
    with pytest.raises(lake.InvalidRequestError, match=told) as refused:
        ingest.run(request)
    assert "on_schema_change" not in str(refused.value)
    assert catalog.table("shop.stock").latest_snapshot() is None


def test_a_new_column_of_an_iceberg_table_has_a_hint(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "lake"), format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.stock", [("sku", "STRING")])
    (tmp_path / "rows.json").write_text(json.dumps(PEAR))
    request = {"warehouse": tmp_path / "lake", "table": "shop.stock"}
    with pytest.raises(
        lake.InvalidRequestError, match=r"on_schema_change='add' the job adds .*; columns="
    ):
        ingest.run(
            {
                **request,
                "source": tmp_path / "rows.json",
                "catalog_options": {"format": "iceberg"},
            }
        )


def test_a_row_with_some_members_of_a_message_is_a_row():
    assert message_format(b'{"before": 1, "after": 2}') is None
    assert message_format(b"[1]") is None
    assert message_format(b"{") is None


def test_a_table_made_of_messages_is_a_warning(tmp_path, caplog):
    lake.open_catalog(str(tmp_path / "lake")).create_database("shop")
    (tmp_path / "rows.json").write_text(json.dumps(MESSAGES["maxwell-json"]))
    request = {"warehouse": tmp_path / "lake", "table": "shop.stock", "create": True}
    ingest.run({**request, "source": tmp_path / "rows.json"})
    assert "each message becomes a row. The source holds change messages: with" in caplog.text
