"""The commit user of a task says which work this is, not which try."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from airflow_provider_lake.identity import commit_user, first_try_millis

TASK = {
    "dag_id": "shop",
    "run_id": "scheduled__2024-01-31T00:00:00+00:00",
    "task_id": "group.land",
    "map_index": -1,
}


def user(table="shop.orders", **change):
    return commit_user(SimpleNamespace(**{"try_number": 1, **TASK, **change}), table)


def test_it_never_changes():
    """Runs that began under one release are retried under the next: the name is a format."""
    assert user() == "airflow.shop.group.land.972c843a6338e7cebf8bd07dd9825633"


def test_a_retry_is_the_same_user():
    assert user(try_number=1) == user(try_number=2)


def test_a_task_that_is_not_mapped_is_the_same_user_with_or_without_an_index():
    assert user(map_index=None) == user(map_index=-1)


@pytest.mark.parametrize(
    "change",
    [
        {"dag_id": "shop2"},
        {"run_id": "manual__2024-01-31T00:00:00+00:00"},
        {"task_id": "land"},
        {"map_index": 0},
        {"table": "shop.items"},
        {"dag_id": "shop.group", "task_id": "land"},
    ],
)
def test_other_work_is_another_user(change):
    assert user(**change) != user()


def test_it_can_be_part_of_a_file_name():
    name = user(dag_id="ä/b c" * 100, run_id="../x")

    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert len(name) < 128


BEGAN = datetime(2024, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start_date", "clear_number", "expected"),
    [
        (BEGAN, 0, 1_706_745_600_000),
        (BEGAN, 1, None),
        (BEGAN, None, None),
        (None, 0, None),
    ],
)
def test_a_run_began_when_it_started_unless_it_was_cleared(start_date, clear_number, expected):
    run = SimpleNamespace(start_date=start_date, clear_number=clear_number)
    assert first_try_millis(run) == expected


def test_a_run_of_this_airflow_says_when_it_began_and_how_often_it_was_cleared():
    from airflow.sdk.api.datamodels._generated import DagRun

    assert {"start_date", "clear_number"} <= set(DagRun.model_fields)
