"""The list of tables: verdict, size and last commit of each, within the time of one page."""

import threading
from pathlib import Path

import pytest

from airflow_provider_lake.page import bounded, overview
from tests.airflow.page.pages import words, write

LIST = "/lake/tables/lake_default"


@pytest.fixture
def milk(catalog):
    """A second table, which precedes ``shop.orders`` on the page."""
    return catalog.create_table("shop.milk", [("id", "BIGINT"), ("item", "STRING")])


def test_each_table_has_a_verdict_a_size_and_the_age_of_its_last_commit(ask, orders, milk):
    for number in range(12):
        write(orders, number)

    said = words(ask(LIST))

    health = orders.health()
    assert "milk empty – 0 B 0 never orders degraded" in said
    assert f"orders degraded {health.score} " in said
    assert said.endswith(" s ago")
    assert "1 degraded 1 empty" in said


def test_a_table_that_cannot_be_read_does_not_hide_the_others(ask, orders, milk, warehouse):
    write(milk, 1)
    write(orders, 1)
    for each in Path(warehouse).glob("shop.db/orders/manifest/manifest-list-*"):
        each.write_bytes(b"")

    said = words(ask(LIST))

    assert "milk healthy 100" in said
    assert "orders unreadable" in said
    assert "1 unreadable 1 healthy" in said


def test_tables_that_were_not_read_in_time_are_one_click_away(ask, orders, milk, monkeypatch):
    monkeypatch.setattr(overview, "_READING_SECONDS", 0)
    late = ask(LIST)
    assert "milk not read" in words(late)
    assert f'<a href="{LIST}?first=shop.milk">Read on from shop.milk</a>' in late.text

    monkeypatch.setattr(overview, "_READING_SECONDS", 60)
    rest = words(ask(f"{LIST}?first=shop.orders"))

    assert "milk not read" in rest
    assert "orders empty" in rest
    assert "Read on" not in rest


def test_a_table_that_hangs_costs_only_itself(ask, orders, milk, monkeypatch):
    """The page shows the tables that were read before the time of a page was over."""
    goes_on, is_read = threading.Event(), overview.Overview._read

    def read(self, catalog, name):
        if name == "shop.orders":
            goes_on.wait(60)
        is_read(self, catalog, name)

    monkeypatch.setattr(overview.Overview, "_read", read)
    monkeypatch.setattr(bounded, "PATIENCE_SECONDS", 6)
    try:
        answer = ask(LIST)
    finally:
        goes_on.set()
        for thread in threading.enumerate():
            if thread.name == "lake-page":
                thread.join()

    assert answer.status_code == 200
    assert "milk empty" in words(answer)
    assert "orders not read" in words(answer)


def test_names_begin_where_the_page_goes_on_in_its_own_order(ask, catalog):
    """``shop-1`` follows ``shop`` on the page, but ``shop-1.x`` precedes ``shop.x`` as a text."""
    catalog.create_database("shop-1")
    for name in ("shop.b", "shop-1.a"):
        catalog.create_table(name, [("id", "BIGINT")])

    said = words(ask(f"{LIST}?first=shop-1.a"))

    assert "b not read" in said
    assert "a empty" in said
