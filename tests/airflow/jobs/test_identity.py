"""The commit user of a task identifies its work, not its try."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.identity import (
    commit_user,
    consumer_name,
    earliest_millis,
    first_try_millis,
    possible_names,
    without_suffix,
)
from tests.airflow.contexts import StateStore, task_context

TASK = {
    "dag_id": "shop",
    "run_id": "scheduled__2024-01-31T00:00:00+00:00",
    "task_id": "group.land",
    "map_index": -1,
}


def user(table="shop.orders", **change):
    return commit_user(SimpleNamespace(**{"try_number": 1, **TASK, **change}), table)


def test_the_name_of_a_commit_user_never_changes():
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


@pytest.mark.parametrize(
    ("clear_number", "run_after", "expected"),
    [
        (0, BEGAN, 1_706_745_660_000),
        (1, BEGAN, 1_706_745_600_000),
        (1, None, None),
    ],
)
def test_a_cleared_run_did_not_begin_before_its_due_time(clear_number, run_after, expected):
    start = BEGAN + timedelta(minutes=1)
    run = SimpleNamespace(start_date=start, clear_number=clear_number, run_after=run_after)
    assert earliest_millis(run) == expected


def test_a_run_of_this_airflow_says_when_it_began_and_how_often_it_was_cleared():
    from airflow.sdk.api.datamodels._generated import DagRun

    assert {"start_date", "clear_number", "run_after"} <= set(DagRun.model_fields)


ROWS = pa.table({"id": [1]})


@pytest.fixture
def orders(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(ROWS)
    return table


class Task:
    """The tries of one task, with what Airflow keeps between them."""

    def __init__(self):
        self.store = StateStore()

    def commit_id(self, *, try_number=1, cleared=0, **more):
        context = {**task_context(try_number=try_number), "task_state_store": self.store}
        context["dag_run"].clear_number = cleared
        return LakeHook().commit_id(context, "shop.orders", **more)


def keep_only_the_newest(table):
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert len(table.snapshots()) == 1


def test_a_first_try_right_after_an_expiry_can_tell_that_it_is_the_first(orders):
    orders.write(ROWS)
    keep_only_the_newest(orders)

    assert orders.write(ROWS, commit=Task().commit_id()).snapshot_id == 3


def test_a_retry_remembers_what_the_first_try_found(orders):
    task = Task()
    first = task.commit_id()
    orders.write(ROWS, commit=first)
    retry = task.commit_id(try_number=2)

    assert retry.first_try_head == first.first_try_head == orders.snapshots()[0].identity
    assert orders.write(ROWS, commit=retry).replayed


def test_a_cleared_task_whose_snapshot_expired_publishes_nothing_twice(orders):
    task = Task()
    orders.write(ROWS, commit=task.commit_id())
    orders.write(ROWS)
    keep_only_the_newest(orders)

    with pytest.raises(lake.CommitUndecidableError):
        orders.write(ROWS, commit=task.commit_id(try_number=2, cleared=1))


def test_a_try_that_is_over_cannot_say_that_nothing_was_published(orders):
    """The first try was stopped before it read the table; meanwhile the second has published."""
    task = Task()
    orders.write(ROWS, commit=task.commit_id(try_number=2))
    orders.write(ROWS)
    keep_only_the_newest(orders)
    task.store.is_over = True
    late = task.commit_id(try_number=1)

    assert late.first_try_head is None
    with pytest.raises(lake.CommitUndecidableError):
        orders.write(ROWS, commit=late)


def test_a_resumed_first_try_does_not_store_its_own_commit_as_the_head_before_it(orders):
    """The store did not store the head when the task was deferred."""
    task = Task()
    orders.write(ROWS, commit=LakeHook().commit_id(task_context(), "shop.orders"))
    orders.write(ROWS)
    keep_only_the_newest(orders)
    resumed = task.commit_id(is_resumed=True)

    assert resumed.first_try_head is None
    assert task.store == {}
    with pytest.raises(lake.CommitUndecidableError):
        orders.write(ROWS, commit=resumed)


def test_a_resumed_first_try_remembers_what_it_found_before_the_deferral(orders):
    task = Task()
    first = task.commit_id()
    orders.write(ROWS, commit=first)

    assert task.commit_id(is_resumed=True).first_try_head == first.first_try_head


def test_a_table_that_is_not_there_yet_has_no_head(warehouse):
    assert Task().commit_id().first_try_head is None


def test_without_a_store_the_start_of_the_run_is_all_there_is(orders):
    commit = LakeHook().commit_id(task_context(), "shop.orders")
    assert commit.first_try_head is None
    assert commit.first_try_millis is not None


@pytest.mark.parametrize("dag_id", ["shop", "naïve.Ü-1", "a" * 196, "日" * 65])
def test_a_consumer_has_the_name_of_its_dag(dag_id):
    """Consumers that are stored already must be found: the name is a format."""
    assert consumer_name(dag_id) == f"airflow.{dag_id}"


def test_a_long_name_of_a_consumer_is_shortened_and_never_changes():
    assert consumer_name("a" * 197) == f"airflow.{'a' * 80}.d10f5416f34b5df42b73a1b077160a0c"
    assert len({consumer_name("日" * count) for count in (66, 67, 100)}) == 3


@pytest.mark.parametrize(
    ("task_id", "names"),
    [
        ("land", {("shop", "land")}),
        ("group.land", {("shop", "group.land"), ("shop.group", "land")}),
    ],
)
def test_a_commit_user_names_its_dag_and_task(task_id, names):
    """Both may contain dots, so a user may name several pairs."""
    found = user(task_id=task_id)

    assert {*possible_names(found)} == names
    assert {*possible_names(f"{found}.compaction-1")} == names
    assert without_suffix(f"{found}.compaction-1") == without_suffix(found) == found


@pytest.mark.parametrize("other", ["somebody", "airflow.shop.land", "3f2c-11", "airflow..", ""])
def test_a_user_of_another_program_names_no_task(other):
    assert [*possible_names(other)] == []
    assert without_suffix(other) == other
