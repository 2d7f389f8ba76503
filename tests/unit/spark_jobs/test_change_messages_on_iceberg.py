"""Change messages are applied to Iceberg tables by key, in their order, each file once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import commit
from spark_jobs.ingest import run
from tests.unit.spark_jobs.messages import ONE_STORY, canal, debezium, item, maxwell

LAST = [("date", 9), ("pear", 5)]


class Stock:
    """The table ``shop.stock`` of an Iceberg catalog, and the job that applies messages to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalog = lake.open_catalog(str(root / "warehouse"), format="iceberg")
        self.catalog.create_database("shop")

    def create(self, version: int = 2, key: tuple[str, ...] = ("sku",), **more: Any) -> None:
        columns = [("sku", "STRING NOT NULL"), ("pieces", "INT")]
        self.catalog.create_table(
            "shop.stock", columns, primary_key=key, format_version=version, **more
        )

    def put(self, name: str, *messages: object) -> None:
        lines = (each if isinstance(each, str) else json.dumps(each) for each in messages)
        (self.root / f"{name}.json").write_text("\n".join(lines) + "\n")

    def ingest(self, form: str, *messages: object, **more: Any) -> dict[str, Any]:
        if messages:
            self.put("messages", *messages)
        return run(
            {
                "warehouse": str(self.root / "warehouse"),
                "catalog_options": {"format": "iceberg"},
                "table": "shop.stock",
                "source": str(self.root / "*.json"),
                "format": f"{form}-json",
                **more,
            }
        )

    @property
    def table(self) -> lake.IcebergTable:
        return self.catalog.table("shop.stock")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(each.values()) for each in self.table.scan().to_arrow().to_pylist())


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


@pytest.mark.parametrize(("form", "version"), [("debezium", 3), ("canal", 2), ("maxwell", 1)])
def test_rows_are_inserted_updated_moved_and_deleted_in_one_commit(stock, form, version):
    stock.create(version)
    stock.table.write(rows(fig=1, kiwi=2))
    commit = {"commit_user": "dag-run", "commit_identifier": 1}
    first = stock.ingest(form, *ONE_STORY[form], **commit)
    assert stock.rows == sorted([*LAST, ("kiwi", 2)])
    again = stock.ingest(form, *ONE_STORY[form], **commit)
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again["snapshot_id"] == first["snapshot_id"] == stock.table.latest_snapshot().id
    assert (first["report"]["rows"], first["report"]["replaced_rows"]) == (2, 1)


def test_staged_messages_change_rows_when_the_job_commit_publishes_them(stock):
    stock.create(3)
    stock.table.write(rows(pear=0, kiwi=2))
    run_of = {"commit_user": "dag-run", "commit_identifier": 1}
    staged = stock.ingest("debezium", *ONE_STORY["debezium"][1:], stage=True, **run_of)
    assert stock.rows == [("kiwi", 2), ("pear", 0)]
    request = {
        "warehouse": str(stock.root / "warehouse"),
        "catalog_options": {"format": "iceberg"},
        "table": "shop.stock",
        "staged": [staged["staged"]],
    }
    done = [commit.run({**request, **run_of}) for _ in range(2)]
    assert stock.rows == sorted([*LAST, ("kiwi", 2)])
    assert [each["replayed"] for each in done] == [False, True]
    again = stock.ingest("debezium", *ONE_STORY["debezium"][1:], stage=True, **run_of)
    assert again["replayed"]


def test_a_batch_that_was_published_but_not_marked_is_not_applied_again(stock):
    """The process dies after the commit; another writer changes a row before the next run."""
    stock.create(3)
    stream = {"checkpoint": str(stock.root / "checkpoint"), "files_per_batch": 1}
    stock.put("a", maxwell("insert", item("pear", 1)))
    stock.put("b", maxwell("update", item("pear", 2), old={"pieces": 1}))
    assert stock.ingest("maxwell", **stream)["report"]["batches"] == 2
    [mark] = (stock.root / "checkpoint").glob("1.done")
    mark.unlink()
    stock.table.update("sku = 'pear'", {"pieces": 7})
    assert stock.ingest("maxwell", **stream)["replayed"] is False
    assert stock.rows == [("pear", 7)]
    stock.put("c", maxwell("delete", item("pear", 7)))
    stock.ingest("maxwell", **stream)
    assert stock.rows == []


def test_the_key_may_be_named_for_a_table_without_identifier_fields(stock):
    stock.create(key=())
    with pytest.raises(lake.InvalidRequestError, match=r"has no identifier fields.*upsert_by="):
        stock.ingest("canal", *ONE_STORY["canal"])
    stock.ingest("canal", *ONE_STORY["canal"], upsert_by=["sku"])
    assert stock.rows == LAST


@pytest.mark.parametrize("form", ONE_STORY)
def test_a_table_is_created_with_the_key_of_the_request(stock, form):
    with pytest.raises(lake.InvalidRequestError, match=r"with create=True, primary_key=\['id'\]"):
        stock.ingest(form, *ONE_STORY[form], create=True)
    stock.ingest(form, *ONE_STORY[form], create=True, primary_key=["sku"])
    assert [(*row[:2],) for row in stock.rows] == LAST
    assert [stock.table.schema.name_of(n) for n in stock.table.schema.identifier_field_ids] == [
        "sku"
    ]


def test_a_created_table_takes_messages_of_all_its_types_again(stock):
    """Iceberg has wider types than some that the messages declare; they ask for no change."""
    types = {
        "sku": "char(3)",
        "pieces": "smallint(6)",
        "at": "datetime(3)",
        "day": "date",
        "price": "decimal(10,2)",
        "on_sale": "tinyint(1)",
        "total": "bigint(20) unsigned",
    }
    most = str((1 << 64) - 1)
    values = ("fig", "9", "2024-01-31 10:11:12.123", "2024-01-31", "1.25", "1", most)
    row = dict(zip(types, values, strict=True))
    for number in range(2):
        more = {"create": True, "primary_key": ["sku"]}
        stock.ingest("canal", canal("INSERT", {**row, "pieces": str(number)}, types=types), **more)
    [found] = stock.table.scan().to_arrow().to_pylist()
    assert [str(each) for each in found.values()] == [
        "fig",
        "1",
        "2024-01-31 10:11:12.123000",
        "2024-01-31",
        "1.25",
        "True",
        most,
    ]


def test_times_of_messages_are_stored_in_a_column_of_microseconds(stock):
    schema = [
        {"field": "sku", "type": "string", "optional": False},
        {"field": "at", "type": "int32", "optional": True, "name": "io.debezium.time.Time"},
    ]
    more = {"create": True, "primary_key": ["sku"]}
    for number in range(2):
        row = {"sku": "fig", "at": 36_000_000 + number}
        stock.ingest("debezium", debezium("u", after=row, schema=schema), **more)
    stock.ingest("maxwell", maxwell("insert", {"sku": "pear", "at": "10:00:00.000002"}))
    found = stock.table.scan().to_arrow().to_pylist()
    assert sorted(str(each["at"]) for each in found) == ["10:00:00.000002", "10:00:00.001000"]


def test_a_row_moves_to_the_partition_of_its_new_values(stock):
    stock.create(partition_by=["pieces"])
    stock.ingest("debezium", *ONE_STORY["debezium"][:2])
    stock.ingest("debezium", *ONE_STORY["debezium"][2:])
    assert stock.rows == LAST


def test_of_an_old_row_only_the_key_is_needed(stock):
    """As PostgreSQL sends deletes without REPLICA IDENTITY FULL."""
    columns = [("sku", "STRING NOT NULL"), ("pieces", "INT NOT NULL")]
    stock.catalog.create_table("shop.stock", columns, primary_key=["sku"])
    stock.ingest("debezium", debezium("c", after=item("pear", 1)))
    stock.ingest("debezium", debezium("d", before=item("pear", None)))
    assert stock.rows == []


@pytest.mark.parametrize("staged", [False, True])
def test_new_and_wider_columns_are_made_before_the_rows_are_written(stock, staged):
    stock.create()
    stock.table.write(rows(kiwi=2))
    wide = maxwell("insert", {**item("fig", 1 << 40), "shelf": 3})
    done = stock.ingest("maxwell", maxwell("insert", item("pear", 1)), wide, stage=staged)
    if staged:
        stock.table.staged.publish([done["staged"]])
    assert stock.rows == [("fig", 1 << 40, 3), ("kiwi", 2, None), ("pear", 1, None)]
    assert [str(each.type) for each in stock.table.schema.fields] == ["string", "long", "long"]


def test_a_type_that_iceberg_cannot_widen_changes_nothing(stock):
    stock.create(partition_by=["pieces"])
    wide = maxwell("insert", {**item("fig", 1 << 40), "shelf": 3})
    with pytest.raises(
        lake.InvalidRequestError, match="the current or an earlier partition spec uses 'pieces'"
    ):
        stock.ingest("maxwell", wide)
    assert stock.table.schema.column_names == ["sku", "pieces"]
    assert stock.table.latest_snapshot() is None


def test_values_that_do_not_fit_are_refused(stock):
    stock.create()
    with pytest.raises(lake.InvalidRequestError, match="'pieces' is INT in the table and written"):
        stock.ingest("maxwell", maxwell("insert", item("pear", 1.5)))


def test_a_compaction_between_two_batches_loses_no_change(stock):
    stock.create(3)
    for number in range(2):
        old = {"pieces": number - 1}
        stock.ingest("canal", canal("INSERT", item(f"s{number}", "0")))
        stock.ingest("canal", canal("UPDATE", item("s0", str(number)), old=[old]))
        stock.table.compact(rewrite_all=True)
    assert stock.rows == [("s0", 1), ("s1", 0)]


def rows(**pieces: int):
    return pa.table({"sku": [*pieces], "pieces": pa.array([*pieces.values()], pa.int32())})


@pytest.mark.parametrize("form", ["debezium", "canal", "maxwell"])
@pytest.mark.parametrize("there", ["iceberg", "mixed", None])
def test_a_column_rowkind_has_the_values_of_the_messages(stock, form, there):
    fig, plum = {"sku": "fig", "rowkind": "x"}, {"sku": "plum"}
    messages = {
        "debezium": [debezium("c", after=fig), debezium("c", after=plum)],
        "canal": [canal("INSERT", each, types={"sku": "text"}) for each in (fig, plum)],
        "maxwell": [maxwell("insert", fig), maxwell("insert", plum)],
    }[form]
    if there:
        stock.catalog.create_table(
            "shop.stock",
            [("sku", "STRING NOT NULL"), ("rowkind", "STRING")],
            primary_key=["sku"],
            format=there,
        )
        stock.ingest(form, messages[1])
        assert stock.rows == [("plum", None)]
    made: dict[str, Any] = {} if there else {"create": True, "primary_key": ["sku"]}
    stock.ingest(form, *messages, **made)
    found = [(each["sku"], each["rowkind"]) for each in stock.table.scan().to_arrow().to_pylist()]
    assert sorted(found) == [("fig", "x"), ("plum", None)]
