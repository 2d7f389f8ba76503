"""An ingestion shows columns before it makes them; a dry run shows them and makes nothing."""

from __future__ import annotations

import logging

import pytest

import lakeformat as lake
from spark_jobs import ingest

NO_SPARK = "no Spark may be touched"


@pytest.fixture
def catalog(tmp_path):
    catalog = lake.open_catalog(tmp_path / "warehouse")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def land(tmp_path):
    """Ingest ``id,price,day`` of two files into ``shop.orders``."""
    for number in (1, 2):
        row = f"{number},1.5,2024-01-31"
        (tmp_path / f"{number}.csv").write_text(f"id,price,day\n{row}\n")

    def run(spark=None, **more) -> dict:
        request = {"warehouse": tmp_path / "warehouse", "table": "shop.orders"}
        return ingest.run({**request, "source": f"{tmp_path}/*.csv", **more}, spark)

    return run


@pytest.mark.parametrize("engine", ["python", "spark"])
def test_a_dry_run_shows_the_files_and_the_columns_of_a_new_table(catalog, land, engine, tmp_path):
    result = land(
        NO_SPARK, create=True, casts={"price": "DECIMAL(5, 2)"}, dry_run=True, engine=engine
    )

    assert result["reason"] == (
        "dry run: 2 files would be added to shop.orders, which would be created with the columns "
        "id BIGINT, price DECIMAL(5, 2), day DATE"
    )
    assert result["report"]["files"] == [f"{tmp_path}/1.csv", f"{tmp_path}/2.csv"]
    assert result["report"]["new_columns"] == ["id BIGINT", "price DECIMAL(5, 2)", "day DATE"]
    assert (result["snapshot_id"], catalog.list_tables("shop")) == (None, [])


def test_a_dry_run_shows_the_changes_of_a_table(catalog, land):
    catalog.create_table("shop.orders", [("id", "INT"), ("price", "DOUBLE")])

    result = land(on_schema_change="add", overwrite="table", dry_run=True)

    assert result["reason"] == (
        "dry run: 2 files would replace all rows of shop.orders; the job would add column day DATE"
    )
    orders = catalog.table("shop.orders")
    assert (orders.schema.arrow_schema().names, orders.latest_snapshot()) == (["id", "price"], None)


@pytest.fixture
def new_only(catalog, tmp_path):
    """Ingest the files of ``tmp_path`` that no earlier run has ingested."""
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("price", "DOUBLE")])

    def run(user: str, **more) -> dict:
        return ingest.run(
            {
                "warehouse": tmp_path / "warehouse",
                "table": "shop.orders",
                "source": f"{tmp_path}/*.*",
                "ingested_by": "task",
                "commit_user": user,
                "commit_identifier": 1,
                "on_schema_change": "add",
                **more,
            }
        )

    return run


def test_a_dry_run_reads_only_the_files_that_the_run_would_read(catalog, new_only, tmp_path):
    (tmp_path / "1.csv").write_text("id,day\n1,2024-01-31\n")
    new_only("a")
    catalog.alter_table("shop.orders", lake.drop_column("day"))
    (tmp_path / "2.json").write_text('{"id": 2, "note": "x"}\n')

    result = new_only("b", dry_run=True)

    assert result["report"]["files"] == [f"{tmp_path}/2.json"]
    assert result["report"]["schema_changes"] == ["add column note STRING"]
    new_only("b")
    assert catalog.table("shop.orders").schema.column_names == ["id", "price", "note"]


def test_a_dry_run_without_a_new_file_shows_no_change(catalog, new_only, tmp_path):
    (tmp_path / "1.csv").write_text("id,day\n1,2024-01-31\n")
    new_only("a")
    catalog.alter_table("shop.orders", lake.drop_column("day"))

    result = new_only("b", dry_run=True)

    assert result["reason"] == "dry run: 0 files would be added to shop.orders"
    assert (result["report"]["files"], result["report"]["schema_changes"]) == ([], [])


def test_a_dry_run_refuses_what_the_run_would_refuse(catalog, land):
    with pytest.raises(lake.NotFoundError, match="With create=True the job creates the table"):
        land(dry_run=True)
    with pytest.raises(lake.InvalidRequestError, match="which the source does not have"):
        land(dry_run=True, create=True, columns={"id": "ID"})
    with pytest.raises(lake.InvalidRequestError, match="'dry_run' and 'checkpoint' exclude"):
        land(dry_run=True, checkpoint="seen")


def test_a_run_logs_the_columns_before_it_makes_them(land, caplog):
    caplog.set_level(logging.INFO, "spark_jobs")

    land(create=True)
    land(create=True, columns={"amount": "price"}, on_schema_change="add")

    told = [each.message for each in caplog.records if "column" in each.message]
    assert told == [
        "shop.orders: creating the table with the columns id BIGINT, price DOUBLE, day DATE",
        "shop.orders: changing the schema: add column amount DOUBLE",
    ]
