"""``lake check``: what people and programs see, and the exit code."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.lake_command import lake_refuses, lake_says


@pytest.fixture
def orders(catalog) -> lake.Table:
    orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("status", "STRING")])
    orders.write(pa.table({"id": [1, 1], "status": ["new", None]}))
    return orders


@pytest.fixture
def show(catalog, orders):
    return lambda *options, code=0: lake_says(catalog, "check", "shop.orders", *options, code=code)


def test_each_check_is_shown_with_its_finding(show):
    shown = show("--min-rows", "1", "--unique", "id,status", "--accepted-values", "status=new,paid")
    assert shown.startswith("3 checks of 2 rows passed\n")
    assert "unique(id, status)" in shown


def test_accepted_values_of_one_column_are_added_together(show):
    accepted = ("--accepted-values", "status=paid", "--accepted-values", "status=new")
    assert show(*accepted).startswith("1 check of 2 rows passed\n")


def test_a_failed_check_exits_with_1(show):
    shown = show("--not-null", "status", "--unique", "id", "--warn-only", "unique", code=1)
    assert shown.startswith("2 rows: 2 checks, 1 failed, 1 warned\n")
    assert "such as id=1, status=NULL" in shown


def test_a_program_gets_the_whole_report(show):
    [report] = json.loads(show("--condition", "id > 1", "--json", code=1))
    assert report["checks"][0]["bad_rows"] == 2


def test_staged_rows_are_checked_by_their_address(orders, show):
    with orders.new_writer() as writer:
        writer.write(pa.table({"id": [2], "status": ["paid"]}))
        address = orders.staged.address(orders.staged.add(writer.prepare()).name)
    assert "1 check of 1 staged row passed" in show("--staged", address, "--not-null", "status")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no check was given"),
        (["--freshness", "id"], "--freshness must be like 'ordered_at=1 d', got 'id'"),
        (["--freshness", "at=1 d", "--freshness", "at=2 d"], "column 'at' has two values"),
        (["--not-null", "satus"], "did you mean 'status'"),
    ],
)
def test_a_mistake_is_answered_with_the_form_that_was_meant(catalog, orders, options, message):
    assert message in lake_refuses(catalog, "check", "shop.orders", *options)
