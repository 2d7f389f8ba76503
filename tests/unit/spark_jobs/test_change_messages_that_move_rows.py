"""The delete of a row that an update moves to another key has the values of the old row."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from tests.unit.spark_jobs.messages import canal, debezium, maxwell

COLUMNS = [("id", "INT"), ("place", "STRING"), ("version", "BIGINT"), ("pieces", "INT")]
MYSQL = {"id": "int", "place": "varchar(9)", "version": "bigint", "pieces": "int"}
PARTIAL = ["canal", "maxwell"]
KINDS = {"c": "insert", "u": "update", "d": "delete"}


def created(
    tmp_path: Path, kind: str, by: list[str] | None = None, columns: Any = COLUMNS, **options: str
) -> Any:
    paimon = kind == "paimon"
    catalog = lake.open_catalog(str(tmp_path / "lake"), **({} if paimon else {"format": "iceberg"}))
    catalog.create_database("shop")
    field = {"sequence.field": "version", "bucket": "1"} if paimon else {}
    return catalog.create_table(
        "shop.stock",
        columns,
        primary_key=["id"],
        partition_by=by or [],
        options={**(field if paimon else {"lake.version-field": "version"}), **options},
        **({} if paimon else {"format": "mixed"}),
    )


def ingest(tmp_path: Path, table: Any, form: str, *messages: Any, between: str = "\n") -> None:
    path = tmp_path / "messages.json"
    path.write_text(between.join(map(json.dumps, messages)) + "\n")
    of_table = {} if isinstance(table, lake.Table) else {"format": "iceberg"}
    run(
        {
            "warehouse": str(tmp_path / "lake"),
            "catalog_options": of_table,
            "table": "shop.stock",
            "source": str(path),
            "format": f"{form}-json",
            "engine": "python",
        }
    )


def row(id: int, version: int | None, pieces: int | None = 1, place: str = "eu") -> dict[str, Any]:
    return {"id": id, "place": place, "version": version, "pieces": pieces}


def texts(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: None if each is None else str(each) for name, each in (values or {}).items()}


def message(form: str, op: str, before: Any, after: Any) -> Any:
    if form == "debezium":
        return debezium(op, before=before, after=after)
    shown = before if after is None else after
    old = {k: v for k, v in before.items() if v != after[k]} if before and after else None
    if form == "maxwell":
        return maxwell(KINDS[op], shown, old)
    olds = None if old is None else [texts(old)]
    return canal(KINDS[op].upper(), texts(shown), old=olds, types=MYSQL)


def rows(table: Any) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow().select([name for name, _ in COLUMNS]).to_pylist()
    return sorted((tuple(each.values()) for each in found), key=str)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("together", [True, False], ids=["one commit", "many commits"])
@pytest.mark.parametrize("form", ["debezium", *PARTIAL])
@pytest.mark.parametrize("kind", ["paimon", "mixed"])
@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([("c", None, row(1, 5)), ("u", row(1, 5), row(2, 3))], [row(2, 3)]),
        ([("c", None, row(1, 5)), ("u", row(1, 5), row(2, None))], [row(2, None)]),
        (
            [
                ("c", None, row(1, 1)),
                ("u", row(1, 1), row(2, 5)),
                ("c", None, row(1, 3, 9)),
            ],
            [row(1, 3, 9), row(2, 5)],
        ),
    ],
    ids=["smaller version", "version to null", "key used again"],
)
def test_the_delete_of_a_moved_row_has_its_version(tmp_path, kind, form, together, told, kept):
    table = created(tmp_path, kind)
    messages = [message(form, *each) for each in told]
    for each in [messages] if together else [[one] for one in messages]:
        ingest(tmp_path, table, form, *each)
    assert rows(table) == [tuple(each.values()) for each in kept]


@pytest.mark.parametrize("form", PARTIAL)
@pytest.mark.parametrize("version", [3, None])
def test_the_delete_in_an_old_partition_has_the_version_of_the_row(tmp_path, form, version):
    table = created(tmp_path, "mixed", by=["place"])
    moved = row(1, version, 2, "us")
    ingest(tmp_path, table, form, message(form, "c", None, row(1, 5)))
    ingest(tmp_path, table, form, message(form, "u", row(1, 5), moved))
    assert rows(table) == [tuple(moved.values())]


@pytest.mark.parametrize("form", PARTIAL)
def test_an_old_version_that_is_null_is_kept_in_a_paimon_table(tmp_path, form):
    table = created(tmp_path, "paimon")
    told = [
        message(form, "c", None, row(1, None)),
        message(form, "u", row(1, None), row(2, 4)),
        message(form, "c", None, row(1, None, 8)),
    ]
    ingest(tmp_path, table, form, *told)
    assert rows(table) == [(1, "eu", None, 8), (2, "eu", 4, 1)]


@pytest.mark.parametrize("form", PARTIAL)
@pytest.mark.parametrize("by", [None, ["place"]])
def test_a_mixed_table_uses_the_new_version_if_the_old_one_is_null(tmp_path, form, by):
    table = created(tmp_path, "mixed", by=by)
    moved = row(2, 4, 1, "us")
    ingest(tmp_path, table, form, message(form, "c", None, row(1, None)))
    ingest(tmp_path, table, form, message(form, "u", row(1, None), moved))
    assert rows(table) == [tuple(moved.values())]


@pytest.mark.parametrize("form", ["debezium", *PARTIAL])
def test_the_changelog_has_the_old_row(tmp_path, form):
    table = created(tmp_path, "paimon", **{"changelog-producer": "input"})
    ingest(tmp_path, table, form, message(form, "c", None, row(1, 1, None)))
    before, after = row(1, 1, None, "eu"), row(2, 2, 20, "us")
    ingest(tmp_path, table, form, message(form, "u", before, after))
    found = table.changes(1, 2).to_arrow().to_pylist()
    [old] = [each for each in found if each["id"] == 1]
    assert {name: old[name] for name in before} == before


def test_one_of_the_rows_of_a_message_moves(tmp_path):
    table = created(tmp_path, "paimon")
    first = [row(1, 5), row(2, 5)]
    ingest(tmp_path, table, "canal", canal("INSERT", *map(texts, first), types=MYSQL))
    new = [texts(row(1, 6, 7)), texts(row(3, 4))]
    old = [{"version": "5", "pieces": "1"}, {"id": "2", "version": "5"}]
    ingest(tmp_path, table, "canal", canal("UPDATE", *new, old=old, types=MYSQL))
    assert rows(table) == [(1, "eu", 6, 7), (3, "eu", 4, 1)]


@pytest.mark.parametrize("form", PARTIAL)
def test_old_values_of_rows_that_do_not_move_need_not_fit(tmp_path, form):
    """The table can be younger than the old value."""
    table = created(tmp_path, "paimon")
    old = row(1, 1, 3_000_000_000)
    ingest(tmp_path, table, form, message(form, "u", old, row(1, 2)))
    assert table.schema.fields[3].type.name == "INT"
    assert rows(table) == [(1, "eu", 2, 1)]


@pytest.mark.parametrize("form", PARTIAL)
def test_old_values_of_a_row_with_the_same_key_need_not_fit(tmp_path, form):
    """The old row can name columns that did not change."""
    table = created(tmp_path, "paimon")
    old, new = row(1, 1, 3_000_000_000), row(1, 2)
    said = maxwell("update", new, old)
    if form == "canal":
        said = canal("UPDATE", texts(new), old=[{**texts(old), "pieces": "many"}], types=MYSQL)
    ingest(tmp_path, table, form, said)
    assert rows(table) == [(1, "eu", 2, 1)]


@pytest.mark.parametrize("form", PARTIAL)
@pytest.mark.parametrize("changed", [row(2, 4, 2, "us"), {"id": 2, "version": 4}])
def test_a_row_without_any_value_moves(tmp_path, form, changed):
    """The old row shows that its values are NULL, so it has more than the key."""
    table = created(tmp_path, "paimon")
    empty = row(1, None, None) | {"place": None}
    moved = empty | changed
    told = [message(form, "c", None, empty), message(form, "u", empty, moved)]
    ingest(tmp_path, table, form, message(form, "c", None, row(9, 9)), *told)
    assert rows(table) == [tuple(moved.values()), (9, "eu", 9, 1)]


@pytest.mark.parametrize("form", PARTIAL)
def test_a_moved_row_with_only_its_key_is_refused(tmp_path, form):
    table = created(tmp_path, "paimon")
    empty = row(1, None, None) | {"place": None}
    told = [message(form, "c", None, row(1, 5)), message(form, "u", empty, empty | {"id": 2})]
    with pytest.raises(lake.InvalidRequestError, match=r"has a delete with only the key"):
        ingest(tmp_path, table, form, *told)
    assert rows(table) == []


@pytest.mark.parametrize("form", PARTIAL)
def test_an_old_null_in_a_column_that_takes_no_null_is_replaced_by_the_new_value(tmp_path, form):
    """The source can have made the column NOT NULL after the message of the old row."""
    columns = [(name, f"{kind} NOT NULL" * (name == "pieces") or kind) for name, kind in COLUMNS]
    table = created(tmp_path, "paimon", columns=columns)
    ingest(tmp_path, table, form, message(form, "c", None, row(1, 1, 0)))
    ingest(tmp_path, table, form, message(form, "u", row(1, 1, None), row(2, 2, 5)))
    assert rows(table) == [(2, "eu", 2, 5)]


@pytest.mark.parametrize("form", PARTIAL)
def test_messages_that_share_a_line_move_rows(tmp_path, form):
    table = created(tmp_path, "paimon")
    told = [
        message(form, "c", None, row(1, 5)),
        message(form, "c", None, row(3, 5)),
        message(form, "u", row(1, 5), row(2, 3)),
        message(form, "u", row(3, 5), row(3, 6, 7)),
    ]
    ingest(tmp_path, table, form, *told, between=" ")
    assert rows(table) == [(2, "eu", 3, 1), (3, "eu", 6, 7)]


@pytest.mark.parametrize("form", PARTIAL)
def test_messages_that_share_a_line_move_rows_with_an_old_null(tmp_path, form):
    table = created(tmp_path, "paimon")
    told = [
        message(form, "c", None, row(1, None)),
        message(form, "c", None, row(3, 5)),
        message(form, "u", row(1, None), row(2, 3)),
    ]
    ingest(tmp_path, table, form, *told, between=" ")
    assert rows(table) == [(2, "eu", 3, 1), (3, "eu", 5, 1)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["paimon", "mixed"])
def test_all_formats_leave_the_same_rows(tmp_path, kind, seed):
    """Random updates move rows, whose versions can become smaller."""
    chance = random.Random(seed)
    kept: dict[int, dict[str, Any]] = {}

    def change() -> tuple[str, Any, Any]:
        id = chance.randrange(5)
        versions = [1, 2, 3, 4] + [None] * (kind == "paimon")
        drawn = row(id, chance.choice(versions), chance.choice([1, 2, None]))
        if id not in kept:
            kept[id] = drawn
            return "c", None, drawn
        before = kept.pop(id)
        if chance.random() < 0.2:
            return "d", before, None
        drawn["id"] = chance.choice([each for each in range(40) if each not in {*kept, id}])
        kept[drawn["id"]] = drawn
        return "u", before, drawn

    told = [[change() for _ in range(chance.randrange(1, 8))] for _ in range(4)]
    results = []
    for form in ["debezium", *PARTIAL]:
        place = tmp_path / form
        place.mkdir()
        table = created(place, kind)
        for batch in told:
            ingest(place, table, form, *(message(form, *each) for each in batch))
        results.append(rows(table))
    assert results[0] == results[1] == results[2]
