"""Upkeep as tasks: what cannot be right in a threshold or a setting is known early, by name."""

import pyarrow as pa
import pytest
from airflow.sdk import DAG

from airflow_provider_lake.arguments import LakeArgumentError
from airflow_provider_lake.maintenance.dags import lake_dags
from airflow_provider_lake.maintenance.gate import due_compaction, due_tables
from airflow_provider_lake.maintenance.policy import PolicyError
from airflow_provider_lake.maintenance.task_group import LakeMaintenanceTaskGroup

STEPS = {"expire_snapshots": {"older_than": "7 d"}}


@pytest.mark.parametrize("wrong", [{"min_files": "5"}, {"min_files": 0}, {"max_bytes": "10 GB"}])
def test_a_threshold_that_cannot_be_right_is_not_asked_again(orders, wrong):
    orders.write(pa.table({"id": [1], "item": ["pear"]}))
    for ask, subject in ((due_compaction, "shop.orders"), (due_tables, "shop")):
        with pytest.raises(LakeArgumentError, match="is a whole number from 1 on"):
            ask(subject, **wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pool_slots": "x"}, r"^shop\.orders: pool_slots is a whole number from 1 on, got 'x'"),
        ({"retries": "x"}, r"^shop\.orders: retries is a whole number from 0 on, got 'x'"),
        ({"pool": 5}, r"^shop\.orders: pool is a text that is not empty, got 5"),
    ],
)
def test_a_group_says_which_setting_of_which_table_is_wrong(wrong, words):
    with DAG("upkeep", schedule=None), pytest.raises(PolicyError, match=words):
        LakeMaintenanceTaskGroup(table="shop.orders", steps=STEPS, **wrong)


def test_a_time_of_a_file_needs_no_quotes(tmp_path):
    (tmp_path / "lake.yaml").write_text(
        "databases: {shop: {tables: {orders: {schedule: '@daily', "
        "expire_snapshots: {older_than: 2024-01-31}}}}}"
    )
    [dag] = lake_dags(tmp_path / "lake.yaml").values()
    assert dag.task_dict["shop_orders.expire_snapshots"].older_than == "2024-01-31"
