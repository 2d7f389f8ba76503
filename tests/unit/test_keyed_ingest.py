"""Jobs write keyed tables with the Python engine; Spark's tasks refuse them before any starts."""

from __future__ import annotations

import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from spark_jobs.spark_write import write_in_tasks


@pytest.mark.parametrize(
    "keys",
    [
        {"primary_key": ["id"], "options": {"bucket": "2"}},
        {"options": {"bucket": "2", "bucket-key": "id"}},
    ],
    ids=["primary key", "queue"],
)
def test_tables_whose_rows_one_writer_numbers_are_refused(tmp_path, keys):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], **keys)
    with pytest.raises(lake.UnsupportedError, match=r"one writer has to number.*engine 'python'"):
        write_in_tasks(None, table, lambda table, batches: batches)


def test_the_python_engine_ingests_into_keyed_tables(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )
    for number, text in enumerate(["mon,1,a\nmon,2,b\n", "mon,2,new\ntue,1,c\n"]):
        source = tmp_path / f"{number}.csv"
        source.write_text(f"dt,id,note\n{text}")
        request = {
            "warehouse": str(tmp_path / "warehouse"),
            "table": "shop.orders",
            "source": str(source),
            "engine": "python",
        }
        assert run(request)["report"]["rows"] == 2
    found = table.scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        ("mon", 1, "a"),
        ("mon", 2, "new"),
        ("tue", 1, "c"),
    ]
