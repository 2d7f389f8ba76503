"""``lake write`` names change messages that it is given as rows, and the job that applies them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from tests.unit.spark_jobs.messages import canal, debezium, item, maxwell

PEAR = item("pear", 1)
MESSAGES = {
    "debezium-json": debezium("c", after=PEAR),
    "canal-json": canal("INSERT", PEAR),
    "maxwell-json": maxwell("insert", PEAR),
}


def refusal(tmp_path, row):
    """Return the error of a write of a JSON file, which writes nothing."""
    catalog = lake.open_catalog(str(tmp_path / "lake"))
    catalog.create_database("shop")
    catalog.create_table("shop.stock", [("sku", "STRING")])
    (tmp_path / "rows.json").write_text(json.dumps(row))
    words = ["write", "shop.stock", str(tmp_path / "rows.json")]
    with pytest.raises(lake.InvalidRequestError) as refused:
        CliRunner().invoke(
            app, [*words, "--warehouse", str(tmp_path / "lake")], catch_exceptions=False
        )
    assert catalog.table("shop.stock").latest_snapshot() is None
    return str(refused.value)


@pytest.mark.parametrize("form", MESSAGES)
def test_change_messages_are_named_and_nothing_is_written(tmp_path, form):
    text = refusal(tmp_path, MESSAGES[form])
    applied = f'to apply them, run the job \'ingest\' with "format": "{form}"'
    assert f"rows.json holds change messages, not rows: {applied}" in text


def test_an_error_about_plain_rows_names_no_messages(tmp_path):
    text = refusal(tmp_path, PEAR)
    assert "no column 'pieces'" in text
    assert "change messages" not in text
