"""Every template runs on a real Airflow, on SQLite and on PostgreSQL.

The scheduler starts DAGs with a schedule, commits start those that watch a table, and the test
approves what waits for a person.
"""

import importlib.util
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from local_airflow import LocalAirflow

import lakeformat as lake

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600
READING_SECONDS = 10
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
ORDERS = "shop.orders"
# policies.py makes the DAGs of lake.yaml, which are called otherwise.
DAILY = {
    "backfill_partitions": "shop.daily_orders",
    "ingest_orders": ORDERS,
    "ingest_checked": "shop.checked_orders",
}
"""The templates that ingest one day's files, and their tables."""
TEMPLATES = sorted({path.stem for path in (ROOT / "dags").glob("*.py")} - {"policies"})


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """Settings of the metadata database."""
    if request.param == "sqlite":
        return {}
    if importlib.util.find_spec("asyncpg") is None:
        pytest.skip("Airflow needs asyncpg for PostgreSQL: pip install -e '.[dev,jdbc]'")
    server = request.getfixturevalue("postgres")
    url = f"postgresql+psycopg2://lake@127.0.0.1:{server.port}/{server.make_database()}"
    return {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url}


@pytest.fixture
def airflow(tmp_path, database):
    connection = {"conn_type": "lake", "extra": {"warehouse": str(tmp_path / "warehouse")}}
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "PYTHONPATH": str(ROOT),
        **database,
    }
    with LocalAirflow(
        tmp_path / "airflow", ROOT / "dags", settings=settings, folder=tmp_path
    ) as airflow:
        airflow.wait_for_dags(*TEMPLATES, "lake_shop", "lake_shop__2", seconds=PATIENCE)
        yield airflow


class Shop:
    """The writer of the table while Airflow maintains it."""

    def __init__(self, place):
        self.catalog = lake.open_catalog(str(place / "warehouse"))
        for number, folder in enumerate(("orders", "berlin", "paris")):
            for day in (YESTERDAY, YESTERDAY + timedelta(days=1)):  # if midnight comes meanwhile
                files = place / "incoming" / folder / f"{day:%Y-%m-%d}"
                files.mkdir(parents=True)
                (files / "part-1.csv").write_text(f"id,item,price\n{number},tea,5\n")

    @property
    def orders(self):
        return self.catalog.table(ORDERS)

    def sell(self, times):
        for number in range(times):
            self.orders.write(pa.table({"id": [number], "item": ["milk"], "price": [2]}))

    def kinds(self):
        return [snapshot.commit_kind for snapshot in self.orders.snapshots()]


def test_every_template_is_green(airflow, tmp_path):
    shop, green = Shop(tmp_path), set()

    def start(dag_id):
        airflow.set_paused(dag_id, False)
        green.add(dag_id)

    def scheduled(dag_id):
        """The scheduler starts yesterday's run by itself."""
        start(dag_id)
        airflow.wait_for_runs(dag_id, 1, seconds=PATIENCE)

    def cleared(dag_id):
        """A person clears the whole run, which then does its work again."""
        airflow.set_paused(dag_id, True)
        [run] = airflow.runs(dag_id)
        wanted = {"dry_run": False, "dag_run_id": run, "only_failed": False}
        airflow.ask("POST", f"dags/{dag_id}/clearTaskInstances", {**wanted, "reset_dag_runs": True})
        airflow.set_paused(dag_id, False)
        airflow.wait_for_run(dag_id, run, seconds=PATIENCE)

    def by_hand(dag_id):
        """It would start at the next hour or later."""
        start(dag_id)
        return airflow.run(dag_id, {}, seconds=PATIENCE)

    for dag_id, name in DAILY.items():
        for run in (scheduled, cleared):
            run(dag_id)
            assert shop.catalog.table(name).scan().count() == 1, (dag_id, run)

    watchers = ("compact_on_commit", "changelog_pipeline")
    for dag_id in watchers:
        start(dag_id)
    give_up = time.monotonic() + PATIENCE
    while "COMPACT" not in shop.kinds() or not airflow.runs("changelog_pipeline"):
        assert time.monotonic() < give_up, "no commit has started a run"
        shop.sell(2)
        time.sleep(5)
    for dag_id in watchers:
        airflow.wait_for_runs(dag_id, 1, seconds=PATIENCE)
        airflow.set_paused(dag_id, True)
    [totals] = shop.catalog.table("shop.item_totals").scan().to_arrow().to_pylist()
    assert totals["item"] == "milk"
    assert totals["total"] == 2 * totals["orders"] > 0

    before = shop.orders.scan().count()
    scheduled("ingest_then_compact")
    assert shop.orders.scan().count() == before + 2

    shop.sell(6)
    compactions = shop.kinds().count("COMPACT")
    scheduled("compact_flink_table")
    airflow.set_paused("compact_flink_table", True)
    assert shop.kinds().count("COMPACT") > compactions

    shop.sell(12)
    by_hand("maintain_tables")
    assert shop.kinds()[-1] == "COMPACT"

    for dag_id in ("lake_shop", "lake_shop__2"):
        by_hand(dag_id)

    assert airflow.ask("GET", "importErrors")["import_errors"] == []
    alone = {"expire_with_approval"}  # as it waits for a person
    assert green | alone == {dag["dag_id"] for dag in airflow.ask("GET", "dags")["dags"]}


def test_snapshots_expire_when_a_person_approves(airflow, tmp_path):
    """The scheduler may have started a run of this week before ours: it asks as well."""
    dag_id, shop, questions, seen = "expire_with_approval", Shop(tmp_path), [], {}
    shop.catalog.create_database("shop")
    shop.catalog.create_table(ORDERS, [("id", "BIGINT"), ("item", "STRING"), ("price", "BIGINT")])
    shop.sell(12)
    airflow.set_paused(dag_id, False)
    run = airflow.trigger(dag_id, {})

    def is_over():
        for each in airflow.runs(dag_id):
            path = f"dags/{dag_id}/dagRuns/{each}/taskInstances/approve"
            questions.extend(approve(airflow, path, seen))
        return airflow.ask("GET", f"dags/{dag_id}/dagRuns/{run}")["state"] == "success"

    airflow.wait_for("the run", is_over, PATIENCE)
    [question] = questions
    assert "snapshot 3" in question  # the oldest that stays
    assert len(shop.kinds()) == 10


def approve(airflow, path, seen):
    """Answer the approval after reading the plan; return the question, if there is one.

    Reading takes a while: Airflow 3.3.2 fails a task whose answer comes before its scheduler has
    heard from the executor that the task's process has ended.
    """
    if airflow.ask("GET", path)["state"] not in ("deferred", "awaiting_input"):
        return []
    if time.monotonic() < seen.setdefault(path, time.monotonic()) + READING_SECONDS:
        return []
    asked = airflow.ask("GET", f"{path}/-1/hitlDetails")
    answer = {"chosen_options": ["Approve"], "params_input": {}}
    airflow.ask("PATCH", f"{path}/-1/hitlDetails", answer)
    return [asked["body"]]
