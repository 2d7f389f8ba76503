"""Maintenance in a run of a DAG: its log, its lineage, and what it leaves to a person."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.operators.maintain import LakeMaintainOperator
from lakeformat.environment import SYSTEM
from tests.airflow.conftest import TEST_DAGS
from tests.airflow.contexts import task_context
from tests.crashed_writer import BUCKETS, crashed_table
from tests.golden.foreign import unpack_foreign
from tests.golden.iceberg_orders import IcebergOrders


def run_of(name):
    """A run of one of the DAGs in ``dags/care.py``."""
    from tests.airflow.versions import DagBag

    return DagBag(str(TEST_DAGS / "care.py")).dags[f"care_{name}"].test()


@pytest.fixture
def logged(caplog):
    """Messages of one level that the packages of this project have logged."""
    for name in ("lakeformat", "spark_jobs", "airflow_provider_lake"):
        caplog.set_level("INFO", logger=name)

    def said(level: int) -> list[str]:
        ours = ("lakeformat", "spark_jobs", "airflow_provider_lake", "airflow.task.operators")
        return [
            each.getMessage()
            for each in caplog.records
            if each.levelno == level and each.name.startswith(ours)
        ]

    return said


def test_a_run_heals_a_table_and_logs_sentences(airflow_db, catalog, logged):
    crashed_table(catalog, commits=12, consumer=None)

    run = run_of("maintain")

    assert run.state == "success"
    said = logged(logging.INFO)
    assert f"shop.orders, compact: 2 of {BUCKETS} units done" in said
    assert any(
        each.startswith(
            f"commit to shop.orders: COMPACT, published as snapshot 13: {BUCKETS} files of "
        )
        for each in said
    )
    assert any(each.startswith("expiry of shop.orders: expired 3 snapshots") for each in said)
    assert not [each for each in said if "Report(" in each or each.startswith("{")]
    assert logged(logging.WARNING) == []


def test_a_policy_maintains_an_iceberg_table(airflow_db, connect, tmp_path):
    extra = {"warehouse": str(tmp_path / "lake"), "options": {"format": "iceberg"}}
    connect("lake_default", conn_type="lake", extra=extra)
    IcebergOrders(tmp_path / "lake")

    run = run_of("iceberg_steps")

    states = {each.task_id.split(".")[-1]: each.state for each in run.get_task_instances()}
    steps = ("is_compaction_due", "compact", "expire_snapshots", "remove_orphans", "analyze")
    assert states == dict.fromkeys(steps, "success")
    table = LakeHook().table("shop.orders")
    assert (str(table.health().verdict), len(table.snapshots())) == ("healthy", 1)
    assert table.analyze().replayed


@pytest.mark.parametrize("first", ["gate", "step"])
def test_steps_that_an_iceberg_table_lacks_fail_the_first_task_at_once(
    airflow_db, connect, tmp_path, capfd, first
):
    extra = {"warehouse": str(tmp_path / "lake"), "options": {"format": "iceberg"}}
    connect("lake_default", conn_type="lake", extra=extra)
    snapshots = len(IcebergOrders(tmp_path / "lake").snapshots)

    run = run_of(f"iceberg_{first}")

    first_task = {"gate": "is_compaction_due", "step": "expire_partitions"}[first]
    states = {each.task_id.split(".")[-1]: each.state for each in run.get_task_instances()}
    assert states.pop(first_task) == "failed"
    assert {*states.values()} == {"upstream_failed"}
    lacks = {
        "gate": "the argument 'idle' of the step 'compact' (choose partitions with where or "
        "partitions); the argument 'retain_max' of the step 'expire_snapshots' (pass retain_min "
        "and older_than, which together select the snapshots); the argument 'limit' of ",
        "step": "the step 'expire_partitions' (drop_partitions([...]) deletes the partitions that "
        "you name)",
    }[first]
    assert (
        f"shop.orders is an Iceberg table, whose maintenance does not have {lacks}"
        in capfd.readouterr().out
    )
    assert len(LakeHook().table("shop.orders").snapshots()) == snapshots


def test_each_table_that_fails_has_a_line_with_its_reason(airflow_db, catalog, capfd):
    crashed_table(catalog, commits=6, consumer=None)
    for name in ("cut", "torn"):
        table = catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
        schema = Path(table.location.removeprefix("file://")) / "schema/schema-0"
        schema.write_text("{")

    run = run_of("maintain_database")

    assert run.state == "failed"
    assert str(catalog.table("shop.orders").health().verdict) == "healthy"
    said = capfd.readouterr().out
    for name in ("cut", "torn"):
        assert f"shop.{name}: CorruptTableError: " in said


@pytest.mark.sampled(2)
@pytest.mark.parametrize("task", ["compact", "compact_dry", "maintain", "maintain_dry"])
def test_a_table_that_java_compacts_too_is_a_warning_with_its_cure(
    airflow_db, catalog, warehouse, tmp_path, logged, task
):
    unpacked = Path(unpack_foreign("precommit_changelog", tmp_path))
    root = Path(warehouse) / "shop.db/orders"
    unpacked.rename(root)
    for path in root.glob("snapshot/snapshot-*"):  # a compaction of long ago is no reason
        snapshot = json.loads(path.read_text())
        path.write_text(json.dumps({**snapshot, "timeMillis": SYSTEM.now_millis()}))
    catalog.table("shop.orders").write(pa.table({"id": [1], "v": pa.array([2], pa.int32())}))

    run = run_of(task)

    assert run.state == "success"
    [warning] = logged(logging.WARNING)
    assert warning.startswith("shop.orders: another program compacts the table too: commit user ")
    assert "last in snapshot 5" in warning
    assert warning.endswith(
        "To do: lake set-option shop.orders write-only=true, then restart that program"
    )


def test_maintenance_of_a_table_has_lineage_and_of_a_database_none(catalog):
    pytest.importorskip("airflow.providers.openlineage", reason="is no dependency")
    crashed_table(catalog, commits=12, consumer=None)
    task = LakeMaintainOperator(task_id="care", table="shop.orders")
    task.execute(task_context())

    [output] = task.get_openlineage_facets_on_complete(None).outputs

    assert output.name.endswith("/shop.db/orders")
    assert output.facets["version"].datasetVersion == "13"
    assert output.outputFacets["outputStatistics"].fileCount == BUCKETS
    of_database = LakeMaintainOperator(task_id="care", database="shop")
    assert of_database.get_openlineage_facets_on_start().outputs == []
