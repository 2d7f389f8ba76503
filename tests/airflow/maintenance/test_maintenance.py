"""Upkeep as tasks: what cannot be right in a threshold or a setting is known early, by name."""

from pathlib import Path

import pyarrow as pa
import pytest
from airflow.sdk import DAG

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.maintenance.dags import lake_dags
from airflow_provider_lake.maintenance.gate import due_compaction, due_tables
from airflow_provider_lake.maintenance.policy import Gate, PolicyError
from airflow_provider_lake.maintenance.task_group import LakeMaintenanceTaskGroup
from tests.airflow.contexts import task_context
from tests.unit.publish.published import iceberg, unobserved

STEPS = {"expire_snapshots": {"older_than": "7 d"}}


def test_a_policy_publishes_what_other_engines_committed_before_other_steps(catalog):
    options = {"metadata.iceberg.storage": "table-location"}
    table = catalog.create_table("shop.shown", [("id", "BIGINT")], options=options)
    unobserved(table).write(pa.table({"id": [1]}))
    with DAG("upkeep", schedule=None) as dag:
        steps = {"expire_snapshots": {}, "publish": True}
        LakeMaintenanceTaskGroup(table="shop.shown", steps=steps)
    assert [*dag.task_dict] == ["shop_shown.publish", "shop_shown.expire_snapshots"]

    dag.task_dict["shop_shown.publish"].execute(task_context())

    assert iceberg(table).scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("wrong", [{"min_files": "5"}, {"min_files": 0}, {"max_bytes": "10 GB"}])
def test_a_threshold_that_cannot_be_right_is_not_asked_again(orders, wrong):
    orders.write(pa.table({"id": [1], "item": ["pear"]}))
    for ask, subject in ((due_compaction, "shop.orders"), (due_tables, "shop")):
        with pytest.raises(LakeArgumentError, match="must be a whole number from 1 on"):
            ask(subject, **wrong)


def test_a_damaged_table_gets_a_task_that_says_so_and_stops_no_other(orders, catalog, warehouse):
    catalog.create_table("shop.damaged", [("id", "BIGINT")])
    Path(warehouse, "shop.db", "damaged", "schema", "schema-0").write_text("{")
    for number in range(6):
        orders.write(pa.table({"id": [number], "item": ["pear"]}))

    due = due_tables("shop", max_bytes=1)

    assert [each["table"] for each in due] == ["shop.orders", "shop.damaged"]


def test_a_table_beyond_the_quota_waits_and_the_log_has_its_size(orders, catalog, caplog):
    refunds = catalog.create_table("shop.refunds", [("id", "BIGINT")])
    for number in range(6):
        orders.write(pa.table({"id": [number], "item": ["pear"]}))
        refunds.write(pa.table({"id": [number]}))

    with caplog.at_level("INFO"):
        due = due_tables("shop", max_bytes=1)

    assert len(due) == 1
    assert " waits for the next run: this run has 0 B left of max_bytes=1" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"pool_slots": "x"},
            r"^shop\.orders: pool_slots must be a whole number from 1 on, got 'x'",
        ),
        ({"retries": "x"}, r"^shop\.orders: retries must be a whole number from 0 on, got 'x'"),
        ({"pool": 5}, r"^shop\.orders: pool must be a non-empty string, got 5"),
        (
            {"gate": {"min_files": 5}},
            r"^shop\.orders: gate must be a Gate\(min_files=…, max_bytes=…\)",
        ),
        ({"steps": {}}, r"^shop\.orders has no step: give some of publish, expire_partitions"),
        ({"steps": {"analyze": False}}, r"^shop\.orders has no step"),
        (
            {"steps": ["compact"]},
            r"^shop\.orders: steps must be a mapping of names to values, got \['compact'\]",
        ),
        (
            {"steps": {"compakt": {}}},
            r"steps has an unknown name 'compakt': did you mean 'compact'\?",
        ),
        (
            {"steps": {"compact": {"strategi": "minor"}}},
            r"compact has an unknown name 'strategi': did you",
        ),
        (
            {"steps": {"compact": {"min_files": 5}}, "gate": Gate(min_files=3)},
            r"give min_files and max_bytes either in gate or in the step compact, not in both",
        ),
    ],
)
def test_a_group_says_which_setting_of_which_table_is_wrong(wrong, words):
    with DAG("upkeep", schedule=None), pytest.raises(PolicyError, match=words):
        LakeMaintenanceTaskGroup(**{"table": "shop.orders", "steps": STEPS, **wrong})


def test_a_group_takes_steps_as_a_policy_writes_them():
    with DAG("upkeep", schedule=None) as dag:
        LakeMaintenanceTaskGroup(
            table="shop.orders",
            steps={"analyze": True, "compact": {"min_files": 7}, "remove_orphans": False},
        )
    assert [*dag.task_dict] == [
        f"shop_orders.{name}" for name in ("compact", "is_compaction_due", "analyze")
    ]
    assert 7 in dag.task_dict["shop_orders.is_compaction_due"].op_args


def test_all_tasks_of_a_group_have_its_pool_slots_and_retries():
    with DAG("upkeep", schedule=None) as dag:
        LakeMaintenanceTaskGroup(
            table="shop.orders",
            steps={"compact": True, "analyze": True},
            pool="lake",
            pool_slots=2,
            retries=3,
        )
    assert "shop_orders.is_compaction_due" in dag.task_dict
    assert {(each.pool, each.pool_slots, each.retries) for each in dag.tasks} == {("lake", 2, 3)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{on: {tables: {orders: {analyze: true}}}}", r"^databases has the name True, which is no"),
        (
            "{shop: {tables: {007: {}}}}",
            r"^shop\.tables has the name 7, which is not a string: quote it",
        ),
        ("{shop: {tables: {1: {}, a: {}}}}", r"^shop\.tables has the name 1"),
        ("{shop: {tables: {a: {}}}, shop: {tables: {b: {}}}}", r"'shop' in line 2 and again in li"),
        (
            "{shop: {tables: {a: {pool: x, pool: y}}}}",
            r"'pool' in line 2 and again in line 2: merge",
        ),
    ],
)
def test_a_name_that_yaml_would_change_or_drop_is_refused(tmp_path, text, words):
    (tmp_path / "lake.yaml").write_text(f"defaults: {{schedule: '@daily'}}\ndatabases: {text}\n")
    with pytest.raises(PolicyError, match=words):
        lake_dags(tmp_path / "lake.yaml")


def test_a_time_of_a_file_needs_no_quotes(tmp_path):
    (tmp_path / "lake.yaml").write_text(
        "databases: {shop: {tables: {orders: {schedule: '@daily', "
        "expire_snapshots: {older_than: 2024-01-31}}}}}"
    )
    [dag] = lake_dags(tmp_path / "lake.yaml").values()
    assert dag.task_dict["shop_orders.expire_snapshots"].older_than == "2024-01-31"


@pytest.mark.parametrize(
    ("table", "group_id"),
    [
        ("shop.orders", "shop_orders"),
        ("shop.orders$branch_dev", "shop_orders_branch_dev"),
        ("my shop.orders", "my_shop_orders"),
        ("_my-shop.orders_", "_my-shop_orders_"),
        ("{{ params.table }}", "params_table"),
    ],
)
def test_a_group_has_a_name_that_airflow_takes_whatever_its_table_is_called(table, group_id):
    with DAG("upkeep", schedule=None) as dag:
        LakeMaintenanceTaskGroup(table=table, steps=STEPS)
    assert [*dag.task_dict] == [f"{group_id}.expire_snapshots"]


def test_tables_of_a_policy_whose_names_differ_in_signs_alone_have_groups_of_their_own():
    tables = {"orders_branch_dev": STEPS, "orders$branch_dev": STEPS}
    shared = {"schedule": "@daily", "tables": tables}
    dags = lake_dags({"databases": {"my shop": shared}})
    assert [*dags] == ["lake_my_shop"]
    assert len(dags["lake_my_shop"].task_dict) == 2


def test_a_schedule_that_is_none_is_refused_with_its_table():
    tables = {"items": {}, "orders": {"schedule": "every day"}}
    policy = {
        "defaults": {"schedule": "@daily", "analyze": True},
        "databases": {"shop": {"tables": tables}},
    }
    with pytest.raises(
        PolicyError, match=r"^shop\.orders: Airflow does not accept schedule 'every day'"
    ):
        lake_dags(policy)
