"""Change messages that change a partition column of a Mixed table: a key has one row."""

from __future__ import annotations

import json
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from tests.unit.spark_jobs.messages import canal, debezium, maxwell

MYSQL = {"id": "bigint", "place": "varchar(20)", "day": "date", "pieces": "int"}


def created(tmp_path: Path, *columns: tuple[str, str], by: list[str]) -> lake.MixedTable:
    catalog = lake.open_catalog(str(tmp_path / "warehouse"), format="iceberg")
    catalog.create_database("shop")
    made = catalog.create_table(
        "shop.stock",
        [("id", "BIGINT"), *columns],
        format="mixed",
        primary_key=["id"],
        partition_by=by,
    )
    assert isinstance(made, lake.MixedTable)
    return made


def ingest(tmp_path: Path, form: str, *messages: Any, between: str = "\n") -> None:
    path = tmp_path / "messages.json"
    path.write_text(between.join(map(json.dumps, messages)) + "\n")
    request = {
        "warehouse": str(tmp_path / "warehouse"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.stock",
        "source": str(path),
        "format": f"{form}-json",
        "engine": "python",
    }
    run(request)


def message(form: str, kind: str, row: Any, old: Any = None, types: Any = None) -> Any:
    """Return a message of Canal, whose values are texts, or of Maxwell."""
    if form == "maxwell":
        return maxwell(kind, row, old)
    texts, before = (
        None if each is None else {k: None if v is None else str(v) for k, v in each.items()}
        for each in (row, old)
    )
    olds = None if before is None else [before]
    known = {name: MYSQL[name] for name in row if name in MYSQL} | (types or {})
    return canal(kind.upper(), texts, old=olds, types=known)


def rows(table: lake.MixedTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(each.values()) for each in table.scan().to_arrow().to_pylist())


@pytest.mark.sampled(6)
@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize("together", [True, False], ids=["one commit", "two commits"])
@pytest.mark.parametrize("by", ["place", "bucket(4, place)", "truncate(1, place)"])
@pytest.mark.parametrize(("before", "after"), [("eu", "us"), (None, "us"), ("eu", None)])
def test_an_update_moves_a_row_to_another_partition(tmp_path, form, together, by, before, after):
    table = created(tmp_path, ("place", "STRING"), by=[by])
    told = [
        message(form, "insert", {"id": 1, "place": before}),
        message(form, "update", {"id": 1, "place": after}, {"place": before}),
    ]
    for each in [told] if together else [[one] for one in told]:
        ingest(tmp_path, form, *each)
    assert rows(table) == [(1, after)]
    ingest(tmp_path, form, message(form, "delete", {"id": 1, "place": after}))
    assert rows(table) == []


@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize("between", [" ", "", " \r\n", "\t"])
def test_messages_that_share_a_line_move_rows_from_a_null(tmp_path, form, between):
    table = created(tmp_path, ("place", "STRING"), by=["place"])
    told = [
        message(form, "insert", {"id": 1, "place": None}),
        message(form, "insert", {"id": 2, "place": None}),
        message(form, "update", {"id": 1, "place": "ü"}, {"place": None}),
        message(form, "insert", {"id": 3, "place": "us"}),
        message(form, "update", {"id": 2, "place": "us"}, {"place": None}),
        message(form, "update", {"id": 3, "place": None}, {"place": "us"}),
    ]
    ingest(tmp_path, form, *told, between=between)
    assert rows(table) == [(1, "ü"), (2, "us"), (3, None)]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_an_update_changes_the_key_and_the_partition(tmp_path, form):
    table = created(tmp_path, ("place", "STRING"), ("pieces", "INT"), by=["place"])
    one, two = {"id": 1, "place": "eu", "pieces": 5}, {"id": 2, "place": "us", "pieces": 6}
    ingest(tmp_path, form, message(form, "insert", one))
    ingest(tmp_path, form, message(form, "update", two, one))
    assert rows(table) == [(2, "us", 6)]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
def test_one_of_several_partition_columns_changes(tmp_path, form):
    table = created(tmp_path, ("place", "STRING"), ("day", "DATE"), by=["place", "month(day)"])
    old = {"place": None, "day": "2024-01-31"}
    new = {"id": 1, "place": "us", "day": "2024-02-01"}
    ingest(tmp_path, form, message(form, "insert", {"id": 1, **old}))
    ingest(tmp_path, form, message(form, "update", {**new, "place": None}, {"day": "2024-01-31"}))
    ingest(tmp_path, form, message(form, "update", new, {"place": None}))
    assert rows(table) == [(1, "us", date(2024, 2, 1))]


@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize(
    ("type", "mysql", "before", "after", "stored"),
    [
        ("DATE", "date", "2024-01-31", "2024-02-01", date(2024, 2, 1)),
        ("DATE", "date", "2024-01-31", None, None),
        (
            "TIMESTAMP(6)",
            "datetime(6)",
            "2024-01-31 01:02:03",
            "2024-01-31 01:02:03.000001",
            datetime(2024, 1, 31, 1, 2, 3, 1),
        ),
        ("DECIMAL(9, 2)", "decimal(9,2)", 1.25, 12345.5, Decimal("12345.50")),
        ("DECIMAL(9, 2)", "decimal(9,2)", 1.25, None, None),
        ("BIGINT", "bigint", 3_000_000_000, None, None),
        ("STRING", "varchar(20)", "2024-01-31", "later", "later"),
        ("BOOLEAN", "tinyint(1)", 1, None, None),
    ],
)
def test_old_values_are_read_in_the_type_of_the_column(
    tmp_path, form, type, mysql, before, after, stored
):
    table = created(tmp_path, ("place", type), by=["place"])
    types = {"id": "bigint", "place": mysql}
    ingest(tmp_path, form, message(form, "insert", {"id": 1, "place": before}, types=types))
    moved = message(form, "update", {"id": 1, "place": after}, {"place": before}, types)
    ingest(tmp_path, form, moved)
    assert rows(table) == [(1, stored)]


def test_a_nested_partition_column_changes(tmp_path):
    table = created(tmp_path, ("place", "ROW<city STRING, street STRING>"), by=["place.city"])
    old, new = ({"city": city, "street": "Main"} for city in ("Ulm", "Rom"))
    ingest(tmp_path, "maxwell", maxwell("insert", {"id": 1, "place": old}))
    ingest(tmp_path, "maxwell", maxwell("update", {"id": 1, "place": new}, {"place": old}))
    assert rows(table) == [(1, new)]


def test_an_old_null_is_found_under_a_name_with_other_letters_and_beside_similar_text(tmp_path):
    table = created(tmp_path, ("größe", "STRING"), ("note", "STRING"), by=["größe"])
    note = '{"old": {"größe": null}}'
    same = {"id": 2, "größe": "M", "note": note}
    ingest(
        tmp_path,
        "maxwell",
        maxwell("insert", {"id": 1, "größe": None, "note": note}),
        maxwell("update", {"id": 1, "größe": "M", "note": note}, {"größe": None}),
        maxwell("insert", {**same, "note": None}),
        maxwell("update", same, {"note": None}),
    )
    assert rows(table) == [(1, "M", note), (2, "M", note)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["canal", "maxwell"])
@pytest.mark.parametrize("seed", range(6))
def test_random_messages_leave_the_rows_that_the_source_has(tmp_path, form, seed):
    """The messages insert, move, change and delete rows; each batch of them is one commit."""
    chance = random.Random(seed)
    by = chance.choice([["place"], ["bucket(3, place)"], ["place", "month(day)"]])
    columns = [("place", "STRING"), ("day", "DATE"), ("pieces", "INT")]
    table = created(tmp_path, *columns, by=by)
    values = {
        "place": [None, "eu", "us", "asia"],
        "day": [None, "2024-01-31", "2024-02-01"],
        "pieces": [None, 1, 2],
    }
    kept: dict[int, dict[str, Any]] = {}

    def change() -> Any:
        id = chance.randrange(6)
        drawn = {name: chance.choice(options) for name, options in values.items()}
        if id not in kept:
            kept[id] = drawn
            return message(form, "insert", {"id": id, **drawn})
        before = {"id": id, **kept.pop(id)}
        if chance.random() < 0.2:
            return message(form, "delete", before)
        free = [each for each in range(6) if each not in kept]
        after = {"id": chance.choice(free) if chance.random() < 0.3 else id, **drawn}
        kept[after["id"]] = drawn
        old = {name: value for name, value in before.items() if value != after[name]}
        return message(form, "update", after, old)

    for _ in range(5):
        ingest(tmp_path, form, *(change() for _ in range(chance.randrange(1, 8))))
        found = table.scan().to_arrow().to_pylist()
        shown = {
            each["id"]: (each["place"], each["day"] and str(each["day"]), each["pieces"])
            for each in found
        }
        assert len(found) == len(shown)
        assert shown == {id: tuple(each.values()) for id, each in kept.items()}


def test_a_debezium_update_without_its_row_before_keeps_the_row_in_the_old_partition(tmp_path):
    """The message does not name the old partition, as docs/ingest-changes.md explains."""
    table = created(tmp_path, ("place", "STRING"), by=["place"])
    old, new = {"id": 1, "place": "eu"}, {"id": 1, "place": "us"}
    ingest(tmp_path, "debezium", debezium("c", after=old), debezium("u", after=new))
    assert rows(table) == [(1, "eu"), (1, "us")]
    ingest(tmp_path, "debezium", debezium("u", before=old, after=new))
    assert rows(table) == [(1, "us")]
