"""System tables with the rows of a table: ``$ro``, ``$audit_log``, ``$binlog``."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.system_tables.binlog import pack_updates, packed_schema
from tests.conformance.format_checklist.keyed_table import KeyedTable
from tests.keyed_rows import KeyedRows, listed

A, B = ("+I", 1, "a"), ("+I", 2, "b")


@pytest.fixture
def deleted() -> KeyedRows:
    """Two rows, one of them deleted after."""
    table = KeyedRows()
    table.commit(A, B)
    table.commit(("-D", 1, "a"))
    return table


def opened(table: KeyedRows, name: str) -> lake.Table:
    return table.catalog.table(f"shop.t${name}")


def test_the_audit_log_keeps_deletes_and_kinds(deleted):
    log = opened(deleted, "audit_log")
    assert listed(log.scan()) == [("-D", 1, "a"), B]
    assert listed(log.scan(snapshot=1)) == [A, B]
    assert listed(log.scan(["v"], where="rowkind = '-D'")) == [("-D", "a")]
    assert listed(log.scan(limit=1)) == [("-D", 1, "a")]
    assert log.scan(limit=0).count() == 0
    assert log.schema.column_names == ["rowkind", "k", "v"]
    assert listed(log.changes(0)) == [A, B, ("-D", 1, "a")]


def test_the_binlog_puts_before_and_after_into_one_row():
    table = KeyedRows({"changelog-producer": "input"})
    table.commit(A, ("-U", 1, "a"), ("+U", 1, "b"))
    table.commit(("-D", 1, "b"), B)
    log = opened(table, "binlog")
    assert listed(log.changes(0)) == [
        ("+I", [1], ["a"]),
        ("+U", [1, 1], ["a", "b"]),
        ("-D", [1], ["b"]),
        ("+I", [2], ["b"]),
    ]
    assert listed(log.scan()) == [("-D", [1], ["b"]), ("+I", [2], ["b"])]
    assert log.scan().schema.names == log.schema.column_names
    assert log.scan(["v"]).to_arrow().column_names == ["rowkind", "v"]
    with pytest.raises(lake.InvalidRequestError, match=r"filter \$audit_log"):
        log.scan(where="k = 1")


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_an_update_is_packed_across_batches(size):
    kinds = ["+I", "-U", "+U", "-U", "+U", "-U"]
    rows = pa.table({"rowkind": kinds, "v": range(6)})
    schema = packed_schema(rows.schema)
    packed = pa.Table.from_batches(pack_updates(iter(rows.to_batches(size)), schema), schema)
    assert packed["rowkind"].to_pylist() == ["+I", "+U", "+U", "-U"]
    assert packed["v"].to_pylist() == [[0], [1, 2], [3, 4], [5]]


def test_the_read_optimised_table_has_the_highest_level_alone(tmp_path):
    table = KeyedTable(
        str(tmp_path / "t"), (("k", "INT NOT NULL"), ("v", "STRING")), ["k"], {"bucket": "1"}
    )
    table.commit(table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], level=5))
    table.commit(table.write([{"k": 3, "v": "d"}], level=4))
    table.commit(table.write([{"k": 1, "v": "A"}, {"k": 3, "v": "c"}]))
    optimised = table.open().system_table("ro")
    assert listed(optimised.scan()) == [(1, "a"), (2, "b")]
    assert listed(optimised.scan(where="v = 'b'")) == [(2, "b")]
    assert optimised.scan().count() == 2
    assert optimised.schema.column_names == ["k", "v"]
    with pytest.raises(lake.UnsupportedError, match=r"\$ro .* has no changes"):
        optimised.changes(0)


def test_the_read_optimised_append_table_is_the_table():
    table = KeyedRows(keyed=False)
    table.commit(A)
    assert listed(opened(table, "ro").scan()) == listed(table.table.scan()) == [(1, "a")]
    assert listed(opened(table, "audit_log").scan()) == [A]


@pytest.mark.parametrize("name", ["ro", "audit_log", "binlog"])
def test_such_a_table_can_only_be_read_and_is_there_before_any_row(name):
    table = opened(KeyedRows(), name)
    assert listed(table.scan()) == []
    with pytest.raises(lake.UnsupportedError, match=rf"\${name} .* is read-only"):
        table.write(pa.table({"k": [1]}))


@pytest.mark.parametrize("name", ["audit_log", "binlog"])
def test_sequence_numbers_are_refused_and_not_left_out(deleted, name):
    storage, layout = deleted.place
    option = b'"table-read.sequence-number.enabled": "true", "bucket"'
    storage.overwrite(layout.schema(0), deleted.table.schema.to_json().replace(b'"bucket"', option))
    with pytest.raises(lake.UnsupportedError, match="shows no sequence numbers"):
        opened(deleted, name).scan().count()


def test_aggregation_fields_say_what_the_options_say_of_each_column():
    catalog = lake.open_catalog("memory://aggregation-fields/wh")
    catalog.create_database("shop")
    catalog.create_table(
        "shop.t",
        [("k", "BIGINT"), ("s", "INT"), ("tags", "ARRAY<STRING>")],
        primary_key=["k"],
        options={
            "bucket": "1",
            "merge-engine": "aggregation",
            "fields.s.aggregate-function": "sum",
            "fields.s.ignore-retract": "true",
        },
    )
    found = catalog.table("shop.t$aggregation_fields").scan().to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("k", "BIGINT NOT NULL", "[]", "[]", None),
        ("s", "INT", "[sum, true]", "[fields.s.aggregate-function, fields.s.ignore-retract]", None),
        ("tags", "ARRAY<STRING>", "[]", "[]", None),
    ]
