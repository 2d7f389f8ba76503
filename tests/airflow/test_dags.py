"""The DAG templates run as they are, in a real Airflow on SQLite."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.identity import commit_user
from tests.airflow.conftest import DAGS, TEST_DAGS
from tests.airflow.versions import since

MIDNIGHT = datetime(2024, 2, 1, tzinfo=UTC)


def load(folder):
    from tests.airflow.versions import DagBag

    bag = DagBag(str(folder))
    assert bag.import_errors == {}
    return bag.dags


@pytest.fixture(scope="module")
def dags(airflow_db):
    return load(DAGS)


def run_for_january_31(dag, incoming):
    """A second call clears the run of the first and runs it again."""
    conf = {"incoming": str(incoming)}
    return dag.test(logical_date=MIDNIGHT, run_after=MIDNIGHT, run_conf=conf)


def test_every_template_has_its_file_s_name_and_says_what_it_needs(dags):
    of_policy = {name for name in dags if name.startswith("lake_shop")}
    files = {path.stem: path for path in DAGS.glob("*.py")}
    assert {*dags} - of_policy == {*files} - {"policies"}
    assert of_policy == {"lake_shop", "lake_shop__2"}
    for path in files.values():
        assert "Prerequisites" in path.read_text()


def test_ingest_orders_lands_a_day_once(dags, tmp_path, warehouse):
    """The second test of the day replaces the rows of the first."""
    day = tmp_path / "incoming" / "2024-01-31"
    day.mkdir(parents=True)
    (day / "part-1.csv").write_text("id,note\n1,tea\n2,milk\n")

    runs = [run_for_january_31(dags["ingest_orders"], tmp_path / "incoming") for _ in "ab"]

    orders = lake.open_catalog(warehouse).table("shop.orders")
    assert [run.state for run in runs] == ["success", "success"]
    assert runs[0].run_id == runs[1].run_id
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert [each.commit_kind for each in orders.snapshots()] == ["APPEND", "OVERWRITE"]


def test_the_macro_renders_the_identity_that_the_operator_commits_with(
    airflow_db, tmp_path, warehouse
):
    """The file is found only if the template renders to its name."""
    ti = SimpleNamespace(
        dag_id="macro_in_a_template",
        run_id=f"manual__{MIDNIGHT.isoformat()}",
        task_id="land",
        map_index=-1,
    )
    user = commit_user(ti, "shop.orders")
    (tmp_path / f"{user}.csv").write_text("id\n1\n")

    run = run_for_january_31(
        load(TEST_DAGS / "macro_in_a_template.py")["macro_in_a_template"], tmp_path
    )

    [snapshot] = lake.open_catalog(warehouse).table("shop.orders").snapshots()
    assert (run.run_id, snapshot.commit_user) == (ti.run_id, user)


@since("3.3", "the state that a task keeps")
def test_runs_right_after_an_expiry_land_their_files(airflow_db, tmp_path, warehouse):
    """All run within ten minutes. Clocks may differ by as much, so times do not show the order."""
    dag = load(TEST_DAGS / "expire_right_after.py")["expire_right_after"]

    for day in range(3):
        (tmp_path / f"{day}.csv").write_text(f"id\n{day}\n")
        moment = MIDNIGHT + timedelta(days=day)
        conf = {"incoming": str(tmp_path)}
        assert dag.test(logical_date=moment, run_after=moment, run_conf=conf).state == "success"

    orders = lake.open_catalog(warehouse).table("shop.orders")
    assert (orders.scan().count(), len(orders.snapshots())) == (3, 1)
