"""The DAGs printed on the pages run twice, cleared once, without a doubled or lost row.

The other printed DAGs ingest nothing, or other tests clear them: ``test_functions.py`` that of the
decorators, ``test_tutorial.py`` that of the tutorial.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from local_airflow import LocalAirflow

import lakeformat as lake

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600
ORDERS = "shop.orders"
EXAMPLES = {
    "shop": ("README.md", "from airflow.sdk import DAG"),
    "orders_from_a_to_z": ("docs/operators.md", ""),
    "tag_orders": ("docs/recipes.md", "tag_orders"),
}
"""The page of each DAG, and a text of its blocks."""


def printed(page, text):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    return "".join(block for block in blocks if text in block)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def airflow(place):
    dags = place / "dags"
    dags.mkdir()
    for dag_id, (page, text) in EXAMPLES.items():
        (dags / f"{dag_id}.py").write_text(printed(page, text))
    connection = {"conn_type": "lake", "extra": {"warehouse": str(place / "warehouse")}}
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "PYTHONPATH": str(ROOT),
    }
    with LocalAirflow(place / "airflow", dags, settings=settings, folder=place) as airflow:
        airflow.wait_for_dags(*EXAMPLES, seconds=PATIENCE)
        yield airflow


@pytest.fixture
def shop(place):
    """Its catalog, where the last example has left nothing."""
    catalog = lake.open_catalog(str(place / "warehouse"))
    catalog.create_database("shop", exist_ok=True)
    if "orders" in catalog.list_tables("shop"):
        catalog.drop_table(ORDERS)
    return catalog


@pytest.fixture
def send(place):
    def write(name, text):
        file = place / "incoming" / "orders" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write


def clear(airflow, dag_id, run):
    airflow.clear(dag_id, run)
    airflow.wait_for_run(dag_id, run, seconds=PATIENCE)


def items(shop, **scan):
    return sorted(shop.table(ORDERS).scan(**scan).to_arrow()["item"].to_pylist())


def test_the_files_of_the_readme_are_ingested_once(airflow, shop, send):
    send("part-1.csv", "id,item\n1,apple\n")
    first = airflow.run("shop", {}, seconds=PATIENCE)
    send("part-2.csv", "id,item\n2,pear\n")
    airflow.run("shop", {}, seconds=PATIENCE)
    assert items(shop) == ["apple", "pear"]

    clear(airflow, "shop", first)

    assert items(shop) == ["apple", "pear"], "the checkpoint knows both files"
    for name in ("part-1.csv", "part-2.csv"):
        (Path(airflow.home).parent / "incoming" / "orders" / name).unlink()


def test_the_operators_of_the_page_replace_rows_of_the_same_keys(airflow, shop, send):
    dag_id, rows = "orders_from_a_to_z", "id,dt,item\n1,2024-01-01,{}\n2,2024-01-02,pear\n"
    send("part-1.csv", rows.format("pear"))
    first, second = (airflow.run(dag_id, {}, seconds=PATIENCE) for _ in range(2))
    assert items(shop) == ["pear", "pear"]

    send("part-1.csv", rows.format("apple"))
    clear(airflow, dag_id, second)
    assert items(shop) == ["apple", "pear"]

    airflow.clear(dag_id, first)  # newer rows would be undone, and no sequence.field decides

    def state(path=""):
        return airflow.ask("GET", f"dags/{dag_id}/dagRuns/{first}{path}")["state"]

    airflow.wait_for("the refusal", lambda: state() == "failed", PATIENCE)
    assert [state(f"/taskInstances/{each}") for each in ("land", "publish")] == [
        "success",
        "failed",
    ]
    assert items(shop) == ["apple", "pear"]


def test_each_day_is_ingested_and_tagged_once(airflow, shop, send):
    shop.create_table(ORDERS, [("id", "BIGINT"), ("item", "STRING")])
    days = [datetime(2024, 1, each, tzinfo=UTC) for each in (1, 2)]
    for day in days:
        send(f"{day:%Y-%m-%d}/part-1.csv", f"id,item\n{day.day},pear\n")
    first, _ = (airflow.run("tag_orders", {}, seconds=PATIENCE, at=day) for day in days)
    assert items(shop) == ["pear", "pear"]

    send("2024-01-01/part-1.csv", "id,item\n1,apple\n")
    clear(airflow, "tag_orders", first)

    assert items(shop) == ["apple", "pear"]
    assert items(shop, tag="2024-01-01") == ["pear"], "the tag keeps the rows of its first run"
    assert len(items(shop, tag="2024-01-02")) == 2
