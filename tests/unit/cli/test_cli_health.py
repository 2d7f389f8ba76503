"""``lake health`` and ``lake compact --order-by``: what people and programs see."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app

runner = CliRunner()


@pytest.fixture
def catalog(tmp_path, monkeypatch) -> lake.Catalog:
    monkeypatch.setenv("LAKE_WAREHOUSE", str(tmp_path))
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    for name in ("empty", "orders"):
        catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
    for number in (4, 2, 5, 1, 3):
        catalog.table("shop.orders").write(pa.table({"id": [number]}))
    return catalog


def show(*arguments: str, code: int = 0) -> str:
    shown = runner.invoke(app, [*arguments])
    assert shown.exit_code == code, shown.output
    return shown.output


def test_the_health_of_a_table_says_why_and_what_to_do(catalog):
    shown = show("health", "shop.orders", "--unknown")
    assert "verdict       degraded\n" in shown
    assert "score         89 of 100" in shown
    assert "the verdict degraded limits the score to 89" in shown
    assert "0 B in 0 unknown files" in shown
    assert shown.rstrip().endswith("lake compact shop.orders")


def test_what_it_says_to_do_helps(catalog):
    show(*show("health", "shop.orders").split("lake ")[-1].split())
    healthy = show("health", "shop.orders")
    assert "verdict       healthy\n" in healthy
    assert "the verdict follows" not in healthy


def test_the_health_of_an_empty_table_is_empty(catalog):
    assert "verdict       empty\n" in show("health", "shop.empty")


def test_a_program_gets_the_whole_report(catalog):
    [report] = json.loads(show("health", "shop.orders", "--json"))
    assert (report["table"], report["verdict"], report["files"]["files"]) == (
        "shop.orders",
        "degraded",
        5,
    )
    assert report["reasons"][0]["advice"] == "lake compact shop.orders"
    assert report["worst_buckets"][0]["small_files"] == 5


def test_a_database_has_a_line_per_table(catalog):
    heading, *lines = show("health", "shop").splitlines()
    assert heading.split()[:3] == ["table", "verdict", "score"]
    assert [line.split()[:2] for line in lines] == [
        ["shop.empty", "empty"],
        ["shop.orders", "degraded"],
    ]
    assert [found["verdict"] for found in json.loads(show("health", "shop", "--json"))] == [
        "empty",
        "degraded",
    ]


def test_a_table_that_cannot_be_read_is_a_line_and_the_exit_code(catalog, tmp_path):
    snapshot = tmp_path / "shop.db/orders/snapshot/snapshot-5"
    snapshot.write_bytes(b"no JSON")
    shown = show("health", "shop", code=1)
    assert "shop.empty" in shown
    assert "CorruptTableError" in shown
    found = json.loads(show("health", "shop", "--json", code=1))
    assert [table["verdict"] for table in found] == ["empty", "unreadable"]
    assert "snapshot-5" in found[1]["error"]


def test_a_database_without_tables_says_so(catalog):
    catalog.create_database("bare")
    assert show("health", "bare") == "bare has no table\n"


def test_rows_are_sorted_from_the_command_line(catalog):
    planned = show("compact", "shop.orders", "--order-by", "id", "--plan")
    assert "sorted by id (order)" in planned
    [report] = json.loads(show("compact", "shop.orders", "--order-by", "id", "--json"))
    assert (report["strategy"], report["files_in"], report["files_out"]) == ("order", 5, 1)
    assert catalog.table("shop.orders").scan().to_arrow()["id"].to_pylist() == [1, 2, 3, 4, 5]


def test_an_option_of_another_format_is_refused_by_name(catalog):
    for more in ((), ("--plan",)):
        shown = runner.invoke(app, ["compact", "shop.orders", "--max-commits", "3", *more])
        assert "whose compact does not take max_commits: " in str(shown.exception)


def test_columns_to_sort_by_may_have_commas_between(catalog):
    catalog.create_table("shop.pairs", [("a", "INT"), ("b", "INT")])
    catalog.table("shop.pairs").write(pa.table({"a": pa.array([1], pa.int32())}))
    for order in (("--order-by", "b, a"), ("--order-by", "b", "--order-by", "a")):
        assert "sorted by b, a (order)" in show("compact", "shop.pairs", *order, "--plan")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"order_strategy": "zorder"}, "name them in order_by"),
        (
            {"order_by": ["id"], "strategy": "minor"},
            "leave out strategy='minor'",
        ),
        ({"order_by": ["id"], "idle": "1 h"}, "chosen partitions: leave out idle"),
    ],
)
def test_what_sorting_does_not_go_with_is_refused(catalog, asked, told):
    table = catalog.table("shop.orders")
    for compact in (table.compact, table.plan_compaction):
        with pytest.raises(lake.InvalidRequestError, match=told):
            compact(**asked)
    assert table.latest_snapshot().id == 5


def test_rows_the_changelog_does_not_tell_of_are_shown_with_the_command_that_does(catalog):
    stock = catalog.create_table(
        "shop.stock",
        [("id", "BIGINT NOT NULL")],
        primary_key=["id"],
        options={"bucket": "1", "changelog-producer": "lookup"},
    )
    stock.write(pa.table({"id": [1, 2]}))
    shown = show("health", "shop.stock")
    assert "does not cover 2 rows in 1 file yet: lake changelog shop.stock\n" in shown
    show("changelog", "shop.stock")
    assert "covers every commit" in show("health", "shop.stock")
