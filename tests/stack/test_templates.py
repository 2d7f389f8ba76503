"""Every template runs on a real Airflow, on SQLite and on PostgreSQL.

The scheduler starts DAGs with a schedule, commits start those that watch a table, and the test
approves what waits for a person. Each template runs twice, and one of its runs is cleared: no row
is doubled or lost.
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
ONE_DAY = timedelta(days=1)
YESTERDAY = datetime.now(UTC) - ONE_DAY
ORDERS = "shop.orders"
DAILY = {
    "backfill_partitions": ("shop.daily_orders", ["orders"]),
    "ingest_orders": (ORDERS, ["orders"]),
    "ingest_checked": ("shop.checked_orders", ["orders"]),
    "ingest_then_compact": ("shop.orders_by_day", ["berlin", "paris"]),
}
"""The templates that ingest one day's files, their tables, and the folders of the files."""
# policies.py makes the DAGs of lake.yaml, which are called otherwise.
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
    """The writer of the tables while Airflow maintains them."""

    def __init__(self, place):
        self.incoming = place / "incoming"
        self.catalog = lake.open_catalog(str(place / "warehouse"))
        self.sold = 0
        for folder in ("orders", "berlin", "paris"):
            # The last one is for a test during which midnight comes.
            for day in (YESTERDAY - ONE_DAY, YESTERDAY, YESTERDAY + ONE_DAY):
                self.send(folder, day, price=5)

    def send(self, folder, day, *, price):
        """Write the one order of a day; only shops name the day in it."""
        files = self.incoming / folder / f"{day:%Y-%m-%d}"
        files.mkdir(parents=True, exist_ok=True)
        number, (head, row) = (
            day.day,
            ("", "") if folder == "orders" else (",dt", f",{day:%Y-%m-%d}"),
        )
        (files / "part-1.csv").write_text(f"id,item,price{head}\n{number},tea,{price}{row}\n")

    def orders_in(self, name):
        """The id and price of each row."""
        found = self.catalog.table(name).scan(columns=["id", "price"]).to_arrow().to_pylist()
        return sorted((row["id"], row["price"]) for row in found)

    @property
    def orders(self):
        return self.catalog.table(ORDERS)

    def sell(self, times):
        for number in range(times):
            self.orders.write(pa.table({"id": [number], "item": ["milk"], "price": [2]}))
        self.sold += times

    def kinds(self):
        return [snapshot.commit_kind for snapshot in self.orders.snapshots()]


class Week:
    """A person with the web interface: starts DAGs, waits for their runs and clears them."""

    def __init__(self, airflow):
        self.airflow, self.green = airflow, set()

    def start(self, dag_id):
        self.airflow.set_paused(dag_id, False)
        self.green.add(dag_id)

    def scheduled(self, dag_id):
        """The scheduler starts yesterday's run by itself."""
        self.start(dag_id)
        self.airflow.wait_for_runs(dag_id, 1, seconds=PATIENCE)
        return self.airflow.runs(dag_id)[-1]

    def by_hand(self, dag_id, at=None):
        """It would start at the next hour or later."""
        self.start(dag_id)
        return self.airflow.run(dag_id, {}, seconds=PATIENCE, at=at)

    def clear(self, dag_id, run):
        """The run does its work again."""
        self.airflow.clear(dag_id, run)
        self.airflow.wait_for_run(dag_id, run, seconds=PATIENCE)


def test_every_template_runs_twice_and_cleared_once_without_a_doubled_or_lost_row(
    airflow, tmp_path
):
    shop, week = Shop(tmp_path), Week(airflow)
    for dag_id, (table, folders) in DAILY.items():
        ingest_twice_and_clear(week, shop, dag_id, table, folders)
    known = shop.orders.scan().count()

    def require_every_order_once(dag_id):
        assert shop.orders.scan().count() == known + shop.sold, dag_id

    watchers = ("compact_on_commit", "changelog_pipeline")
    for dag_id in watchers:
        week.start(dag_id)
    give_up = time.monotonic() + PATIENCE
    while "COMPACT" not in shop.kinds() or min(len(airflow.runs(each)) for each in watchers) < 2:
        assert time.monotonic() < give_up, "no commit has started a run"
        shop.sell(2)
        time.sleep(5)
    for dag_id in watchers:
        airflow.wait_for_runs(dag_id, 2, seconds=PATIENCE)
        week.clear(dag_id, airflow.runs(dag_id)[0])
        airflow.set_paused(dag_id, True)
        require_every_order_once(dag_id)
    [totals] = shop.catalog.table("shop.item_totals").scan().to_arrow().to_pylist()
    assert totals["item"] == "milk"
    assert totals["total"] == 2 * totals["orders"] > 0
    assert totals["orders"] <= shop.sold

    clear_a_run_that_waits_for_a_compaction(week, shop)
    require_every_order_once("compact_flink_table")

    shop.sell(12)
    for dag_id in ("maintain_tables", "lake_shop", "lake_shop__2"):
        first, _ = week.by_hand(dag_id), week.by_hand(dag_id)
        week.clear(dag_id, first)
        require_every_order_once(dag_id)
    assert shop.kinds()[-1] == "COMPACT"
    for table, _ in DAILY.values():
        assert len(shop.orders_in(table)) >= 2

    assert airflow.ask("GET", "importErrors")["import_errors"] == []
    alone = {"expire_with_approval"}  # as it waits for a person
    assert week.green | alone == {dag["dag_id"] for dag in airflow.ask("GET", "dags")["dags"]}


def ingest_twice_and_clear(week, shop, dag_id, table, folders):
    """Two days are ingested; then the file of the first one is corrected, and its run cleared."""
    first = week.scheduled(dag_id)
    [(number, _)] = {*shop.orders_in(table)}
    assert len(shop.orders_in(table)) == len(folders), dag_id
    week.by_hand(dag_id, at=YESTERDAY)  # its data are of the day before
    both = shop.orders_in(table)
    assert len(both) == 2 * len(folders), dag_id
    if len(folders) > 1:
        shop.catalog.table(table).compact(strategy="full")

    for day in (YESTERDAY, YESTERDAY + ONE_DAY):
        for folder in folders:
            shop.send(folder, day, price=6)
    week.clear(dag_id, first)

    corrected = sorted((each, 6 if each == number else price) for each, price in both)
    assert shop.orders_in(table) == corrected, dag_id


def clear_a_run_that_waits_for_a_compaction(week, shop):
    """The DAG is continuous: its runs go on while it sells, and so does the cleared one."""
    dag_id, airflow = "compact_flink_table", week.airflow
    compactions = shop.kinds().count("COMPACT")
    week.start(dag_id)

    def until(what, is_true):
        def sells_until():
            shop.sell(6)
            time.sleep(5)
            return is_true()

        airflow.wait_for(what, sells_until, PATIENCE)

    def ended():
        found = airflow.ask("GET", f"dags/{dag_id}/dagRuns?order_by=run_after")["dag_runs"]
        return [run["dag_run_id"] for run in found if run["state"] == "success"]

    until("two runs", lambda: len(ended()) >= 2)
    assert shop.kinds().count("COMPACT") >= compactions + 2
    first = ended()[0]
    airflow.clear(dag_id, first)
    until("the cleared run", lambda: first in ended())
    airflow.set_paused(dag_id, True)


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

    airflow.run(dag_id, {}, seconds=PATIENCE)
    airflow.clear(dag_id, run)
    airflow.wait_for_run(dag_id, run, seconds=PATIENCE)
    assert (len(questions), len(shop.kinds())) == (1, 10), "nothing is left to expire, or to ask"
    assert shop.orders.scan().count() == shop.sold


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
