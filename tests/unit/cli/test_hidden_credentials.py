"""Credentials that another program has stored as options of a table are not printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.tables.credential_options import shown_option
from lakeformat.tables.wanted_table import WantedTable

SECRETS = {
    "s3.secret-access-key": "hush-1",
    "fs.azure.account.key.store": "hush-2",
    "header.Authorization": "Bearer hush-3",
    "jdbc.url": "postgresql://me:hush-4@host/db",
    "theirs.note": "plain",
}
"""Options that another program has stored, and one without a secret."""


def with_secrets(format: str, root: Path) -> Any:
    """A table ``shop.orders`` in which another program has stored credentials."""
    catalog = lake.open_catalog(str(root), format="paimon" if format == "paimon" else "iceberg")
    catalog.create_database("shop")
    kind = {"format": "mixed", "primary_key": ["id"]} if format == "mixed" else {}
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], **kind)
    if format == "paimon":
        file = root / "shop.db/orders/schema/schema-0"
        schema = json.loads(file.read_text())
        file.write_text(json.dumps(schema | {"options": SECRETS}))
    else:
        handle = table._pair.base if format == "mixed" else table._handle
        pointers = [handle.pointer, table._pair.change] if format == "mixed" else [handle.pointer]
        for pointer in pointers:
            store = replace(handle, pointer=pointer)
            commit_metadata(store, lambda now: set_properties(now.metadata, SECRETS))
    return catalog


@pytest.mark.parametrize("format", ["paimon", "iceberg", "mixed"])
def test_credentials_that_another_program_stored_are_hidden(format, tmp_path):
    catalog = with_secrets(format, tmp_path)
    assert SECRETS.items() <= dict(options_of(catalog)).items()
    at = [] if format == "paimon" else ["--format", "iceberg"]

    def says(command: str, *arguments: str) -> str:
        done = CliRunner().invoke(
            app, ["-w", str(tmp_path), *at, command, "shop.orders", *arguments]
        )
        assert done.exit_code == 0, done.output
        return done.output

    shown = [says("options"), says("options", "--json")]
    if format == "paimon":
        shown += [
            says("schemas", "--json"),
            str(catalog.table("shop.orders").system_table("options").scan().to_arrow().to_pylist()),
        ]
    key, *others = SECRETS
    unset = says("unset-option", key)
    assert unset == f"option '{key}' of shop.orders: '***' before, not set now\n"
    shown.append(says("unset-option", *others, "--json"))
    for each in shown:
        assert "hush" not in each
        assert "plain" in each
    assert key in shown[0]
    assert not SECRETS.keys() & dict(options_of(catalog)).keys()


def options_of(catalog: Any) -> Mapping[str, str]:
    table = catalog.table("shop.orders")
    return table.properties if hasattr(table, "properties") else table.schema.options


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("adls.sas-token.store", "x", "***"),
        ("client.encryption-key", "x", "***"),
        ("fs.oss.accessKeySecret", "x", "***"),
        ("fs.cosn.userinfo.secretKey", "x", "***"),
        ("s3.sessionToken", "x", "***"),
        ("dbPassword", "x", "***"),
        ("PGPASSWORD", "x", "***"),
        ("kafka.sasl.jaas.config", "LoginModule required password=x;", "***"),
        ("adls.connection-string.store", "AccountKey=x", "***"),
        ("primary-key", "id", "id"),
        ("record-key.fields", "id", "id"),
        ("mixed-format.primary-key-fields", "id", "id"),
        ("uri", "https://host/db", "https://host/db"),
        ("uri", "https://me:x@host/db", "https://…@host/db"),
        ("uri", "jdbc:x://host/db?user=me&pwd=x", "jdbc:x://host/db?user=me&pwd=…"),
    ],
)
def test_only_credentials_are_hidden(key, value, shown):
    assert shown_option(key, value) == shown


@pytest.mark.parametrize("format", ["paimon", "iceberg"])
def test_a_difference_from_a_description_does_not_show_a_credential(format, tmp_path):
    catalog = with_secrets(format, tmp_path)
    key = "header.Authorization"
    found = catalog.table("shop.orders").contradictions(WantedTable(options={key: "hush-5"}))
    assert [key in each for each in found] == [True]
    assert "hush" not in found[0]
