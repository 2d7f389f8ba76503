"""The mistakes that people make in DAGs: where each is caught, and the line that is shown.

Each case of ``mistakes.py`` is a part of a DAG file. It is parsed, and its tasks are run without a
scheduler, on small tables. A mistake is caught

- ``parse``: the DAG does not import;
- ``run``: the task fails, and is not retried;
- ``retry``: the task fails, and a retry may succeed, for example once a file has arrived;
- ``warning``: the task succeeds, and logs a WARNING.
"""

import logging
import os
import shutil
import textwrap
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from airflow.sdk import DAG, Asset, task

import lakeformat as lake
from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.compat import AirflowFailException
from airflow_provider_lake.decorators.lake_commit import lake_commit_task
from airflow_provider_lake.decorators.lake_job import lake_job_task
from airflow_provider_lake.maintenance.dags import lake_dags
from airflow_provider_lake.maintenance.task_group import LakeMaintenanceTaskGroup
from airflow_provider_lake.provider_info import get_provider_info
from tests.airflow.contexts import task_context
from tests.airflow.mistakes import MISTAKES
from tests.airflow.versions import TaskDeferred

DAY = datetime(2024, 1, 1, tzinfo=UTC)


def operators_and_sensors():
    info = get_provider_info()
    modules = [
        path
        for kind in ("operators", "sensors")
        for each in info[kind]
        for path in each["python-modules"]
    ]
    return {
        name: each
        for path in modules
        for name, each in vars(import_module(path)).items()
        if name.startswith("Lake") and isinstance(each, type)
    }


IMPORTED = {
    **operators_and_sensors(),
    **{
        each.__name__: each
        for each in (
            *(Asset, DAG, LakeMaintenanceTaskGroup, Path, date, datetime, lake_asset, lake_dags),
            *(lake_commit_task, lake_job_task, timedelta),
        )
    },
    "pa": pa,
    "task": task,
}
"""The names that every DAG file of the cases has imported."""


@pytest.fixture(scope="module")
def lake_with_tables(tmp_path_factory):
    """A warehouse: ``orders`` has keys, days and a tag, ``plain`` has neither."""
    home = tmp_path_factory.mktemp("mistakes")
    catalog = lake.open_catalog(str(home / "warehouse"))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("item", "STRING"), ("dt", "STRING")]
    keys = {"primary_key": ["id", "dt"], "partition_by": ["dt"]}
    orders = catalog.create_table("shop.orders", columns, **keys, options={"bucket": "1"})
    for day in ("2024-01-30", "2024-01-31", "2024-02-03"):
        orders.write(pa.table({"id": [1], "item": ["apple"], "dt": [day]}))
    orders.tags.create("v1")
    plain = catalog.create_table("shop.plain", columns[:2])
    plain.write(pa.table({"id": [1], "item": ["apple"]}))
    (home / "in").mkdir()
    (home / "in" / "a.csv").write_text("id,item\n1,apple\n")
    (home / "in" / "a.xlsx").write_text("")
    return home


@pytest.fixture(scope="module")
def lake_with_a_pair(tmp_path_factory):
    """A warehouse with a Mixed table, which no case changes."""
    home = tmp_path_factory.mktemp("iceberg")
    catalog = lake.open_catalog(str(home), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("item", "STRING")]
    catalog.create_table("shop.pair", columns, format="mixed", primary_key=["id"])
    return home


@pytest.fixture
def here(mistake, lake_with_tables, lake_with_a_pair, tmp_path, monkeypatch, connect):
    """A copy of it as the worker's directory, and the connections of the cases.

    A mistake that is caught while the DAG is parsed needs no copy: no task runs.
    """
    home = tmp_path / "home"
    if mistake.where == "parse":
        home.mkdir()
    else:
        shutil.copytree(lake_with_tables, home)
    monkeypatch.chdir(home)
    connect("lake_default", conn_type="lake", extra={"warehouse": str(home / "warehouse")})
    extra = {"warehouse": str(lake_with_a_pair), "format": "iceberg"}
    connect("iceberg", conn_type="lake", extra=extra)
    return home


def parse(code):
    """Parse a DAG file as Airflow does, and return its tasks in their order."""
    with DAG("mistaken", schedule=None, start_date=DAY) as dag:
        exec(textwrap.dedent(code), dict(IMPORTED))
    return dag, list(dag.topological_sort())


def run(dag, each):
    """Run a task as the worker does; results of earlier tasks are missing, as if skipped."""
    context = task_context(each.task_id)
    context["ti"].xcom_pull = lambda **asked: asked["default"]
    context["ti"].task = each
    context["dag_run"].conf = {}
    each.render_template_fields(
        {**context, "dag": dag, "params": {"day": None, "list": "a,b"}, "ds": "2024-02-02"}
    )
    return each.execute(context)


def caught(mistake, caplog, recwarn):
    """Return where a mistake is caught, and the line that is shown."""
    try:
        dag, tasks = parse(mistake.code)
    except (TypeError, ValueError) as reason:
        return "parse", str(reason)
    try:
        for each in tasks:
            run(dag, each)
    except AirflowFailException as reason:
        return "run", str(reason)
    except TaskDeferred:
        pass  # a sensor waits
    except Exception as reason:  # noqa: BLE001 - whatever is raised is retried
        return "retry", f"{type(reason).__name__}: {reason}"
    logged = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    logged += [str(each.message) for each in recwarn]  # Airflow logs them
    return ("warning", "\n".join(logged)) if logged else ("nowhere", "")


@pytest.mark.filterwarnings("ignore:Task '.*' was never mapped")
@pytest.mark.parametrize("mistake", [pytest.param(each, id=each.what) for each in MISTAKES])
def test_a_mistake_is_caught_as_early_as_possible_and_answered_in_one_line(
    mistake, here, lake_with_a_pair, connect, caplog, recwarn
):
    for conn_id, fields in mistake.connections.items():
        connect(conn_id, **fields)

    where, line = caught(mistake, caplog, recwarn)

    line = line.replace(str(here), "HERE").replace(str(lake_with_a_pair), "ICEBERG")
    line = line.replace(f"user id {os.geteuid()}", "user id UID")
    assert (where, line) == (mistake.where, mistake.line)
