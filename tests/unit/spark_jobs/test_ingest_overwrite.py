"""An ingestion that replaces rows: of the whole table, or of the partitions that get rows."""

from __future__ import annotations

import sqlite3
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import ingest
from tests.sampling import SEED, count

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]
KEYED = {"primary_key": ["dt", "id"], "options": {"bucket": "2"}}


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(tmp_path / "warehouse")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def land(tmp_path):
    """Ingest the rows of a CSV file, such as ``"mon,1,a"``, into ``shop.orders``."""

    def run(*rows: str, **more) -> dict:
        path = tmp_path / "orders.csv"
        path.write_text("\n".join(("dt,id,note", *rows, "")))
        request = {"warehouse": tmp_path / "warehouse", "table": "shop.orders", "source": path}
        return ingest.run({**request, **more})

    return run


def rows_of(catalog):
    found = catalog.table("shop.orders").scan().to_arrow().to_pylist()
    return sorted(",".join(str(value) for value in row.values()) for row in found)


@pytest.fixture(params=[{}, KEYED], ids=["append", "keyed"])
def orders(request, catalog):
    return catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], **request.param)


def test_partitions_that_get_rows_are_replaced(orders, catalog, land):
    land("mon,1,a", "mon,2,b", "tue,1,c")

    report = land("mon,3,new", overwrite="partitions")["report"]

    assert rows_of(catalog) == ["mon,3,new", "tue,1,c"]
    assert (report["kind"], report["rows"], len(orders.snapshots())) == ("OVERWRITE", 1, 2)


def test_the_whole_table_is_replaced(orders, catalog, land):
    land("mon,1,a", "tue,1,c")

    land("mon,3,new", overwrite="table")

    assert rows_of(catalog) == ["mon,3,new"]


@pytest.mark.parametrize(
    ("overwrite", "left"), [("partitions", ["mon,1,a"]), ("table", []), (None, ["mon,1,a"])]
)
def test_a_source_without_rows_replaces_the_table_but_no_partition(
    orders, catalog, land, overwrite, left
):
    land("mon,1,a")

    result = land(overwrite=overwrite)

    assert rows_of(catalog) == left
    assert result["skipped"] == bool(left)


@pytest.mark.parametrize("overwrite", ["partitions", "table"])
def test_a_retry_replaces_nothing_that_came_later(orders, catalog, land, overwrite):
    run = {"overwrite": overwrite, "commit_user": "run", "commit_identifier": 1}
    first = land("mon,1,a", **run)
    land("mon,2,later")

    again = land("mon,1,a", **run)

    assert (again["replayed"], again["snapshot_id"]) == (True, first["snapshot_id"])
    assert rows_of(catalog) == ["mon,1,a", "mon,2,later"]


@pytest.mark.parametrize("overwrite", ["partitions", "table"])
def test_an_overwrite_ignores_commit_replaces(orders, catalog, land, overwrite):
    """The rows of the first run share a file with later rows, so an append cannot remove them."""
    first = land("mon,1,a", commit_user="run", commit_identifier=1)
    land("mon,2,b")
    orders.compact()
    again = {"commit_identifier": 2, "commit_replaces": first["snapshot_id"]}
    land("mon,1,c", commit_user="run", overwrite=overwrite, **again)
    assert rows_of(catalog) == ["mon,1,c"]


def test_a_table_without_partitions_is_replaced_only_as_a_whole(catalog, land):
    catalog.create_table("shop.orders", COLUMNS)
    land("mon,1,a")

    with pytest.raises(lake.InvalidRequestError, match=r"has no partitions.*overwrite='table'"):
        land("mon,2,b", overwrite="partitions")
    assert rows_of(catalog) == ["mon,1,a"]

    land("mon,2,b", overwrite="table")
    assert rows_of(catalog) == ["mon,2,b"]


def test_a_new_table_takes_the_rows(catalog, land):
    land("mon,1,a", overwrite="partitions", create=True, partition_by=["dt"])

    assert rows_of(catalog) == ["mon,1,a"]


def test_keys_that_may_be_in_any_partition_are_replaced_only_as_a_whole(catalog, land):
    catalog.create_table(
        "shop.orders", COLUMNS, primary_key=["id"], partition_by=["dt"], options={"bucket": "-1"}
    )
    land("mon,1,a")

    with pytest.raises(lake.UnsupportedError, match="could leave a key in two partitions"):
        land("tue,1,b", overwrite="partitions")
    land("tue,1,b", overwrite="table")
    assert rows_of(catalog) == ["tue,1,b"]


def test_a_copy_of_a_sql_table_replaces_the_previous_one(tmp_path, catalog):
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("CREATE TABLE orders (dt TEXT, id BIGINT, note TEXT)")
        database.execute("INSERT INTO orders VALUES ('mon', 2, 'b')")
    database.close()
    orders = catalog.create_table("shop.orders", COLUMNS)
    orders.write(pa.table({"dt": ["sun"], "id": [1], "note": ["a"]}))

    ingest.run(
        {
            "warehouse": tmp_path / "warehouse",
            "table": "shop.orders",
            "jdbc_url": f"sqlite:///{tmp_path}/shop.sqlite",
            "jdbc_table": "orders",
            "overwrite": "table",
        }
    )

    assert rows_of(catalog) == ["mon,2,b"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"checkpoint": "seen"}, "'overwrite' and 'checkpoint' exclude each other: only new"),
        ({"stage": True}, "'overwrite' and 'stage' exclude each other: the job 'commit' adds"),
        ({"format": "maxwell-json"}, "'overwrite' cannot be used with format 'maxwell-json'"),
        (
            {"source": None, "source_table": "shop.other", "consumer": "c"},
            "'overwrite' needs key 'source' or 'jdbc_url'",
        ),
        ({"overwrite": "partition"}, "key 'overwrite' must be 'partitions' or 'table'"),
    ],
)
def test_an_overwrite_that_would_lose_rows_is_refused(land, more, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        land("mon,1,a", **{"overwrite": "table", **more})


def test_a_batch_in_transaction_order_keeps_what_a_stream_changed_since(catalog, land):
    table = catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], **KEYED)
    land("mon,1,join", "mon,2,amy")
    read = str(table.position())
    land("mon,1,john", "tue,3,bob")
    order = {"read_snapshot": read, "conflict": "transaction-order"}
    land("mon,1,join-fixed", "mon,2,AMY", overwrite="table", **order)
    assert rows_of(catalog) == ["mon,1,john", "mon,2,AMY", "tue,3,bob"]
    with pytest.raises(lake.CommitConflictError, match="was computed from snapshot 1"):
        land("mon,1,join-fixed", read_snapshot=read)
    with pytest.raises(lake.InvalidRequestError, match="'conflict' needs key 'read_snapshot'"):
        land("mon,1,join-fixed", conflict="transaction-order")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"read_snapshot": None, "conflict": "optimistic"},
            "key 'conflict' needs key 'read_snapshot'",
        ),
        ({"read_snapshot": "the last one"}, "key 'read_snapshot' must be a position"),
        ({"conflict": "ordered"}, "key 'conflict' must be 'optimistic' or 'transaction-order'"),
        ({"stage": True}, "'read_snapshot' and 'stage' exclude each other"),
        ({"checkpoint": "seen"}, "'read_snapshot' and 'checkpoint' exclude each other"),
    ],
)
def test_a_batch_that_cannot_be_ordered_is_refused(land, more, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        land("mon,1,a", **{"read_snapshot": "1", "conflict": "transaction-order", **more})


class Model:
    """The rows that a table must hold: by key if it has one, else all."""

    def __init__(self, is_keyed: bool) -> None:
        self.is_keyed = is_keyed
        self.rows: list[tuple[str, int, str]] = []

    def land(self, rows: list[tuple[str, int, str]], overwrite: str | None) -> None:
        replaced = {row[0] for row in rows}
        if overwrite is not None:
            is_table = overwrite == "table"
            self.rows = [r for r in self.rows if not is_table and r[0] not in replaced]
        self.rows += rows
        if self.is_keyed:
            self.rows = list({row[:2]: row for row in self.rows}.values())

    def lines(self) -> list[str]:
        return sorted(",".join(map(str, row)) for row in self.rows)


@pytest.mark.parametrize("number", range(count(3, 60, "INGEST_OVERWRITES")))
def test_any_order_of_ingestions_gives_the_rows_of_the_model(catalog, land, number):
    random = Random(f"{SEED}-{number}")
    is_keyed = random.random() < 0.5
    catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], **(KEYED if is_keyed else {}))
    model = Model(is_keyed)
    for step in range(8):
        days = random.sample(["mon", "tue", "wed"], random.randint(0, 3))
        rows = [(day, random.randint(1, 3), f"{step}") for day in days for _ in range(2)]
        overwrite = random.choice([None, "partitions", "table"])
        identity = {"commit_user": "run", "commit_identifier": step}
        for _ in range(random.randint(1, 2)):  # the second is a retry
            land(*(",".join(map(str, row)) for row in rows), overwrite=overwrite, **identity)
        model.land(rows, overwrite)
        assert rows_of(catalog) == model.lines(), f"SEED={SEED}, {number=}, {step=}, {overwrite=}"
