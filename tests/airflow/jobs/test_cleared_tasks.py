"""A cleared task does its work again, once; a retry does not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from airflow.sdk import BaseOperator

import lakeformat as lake
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.decorators.lake_commit import LakeCommitDecoratedOperator
from airflow_provider_lake.jobs.failures import LakeTaskKilled
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.rollback import LakeRollbackOperator
from tests.airflow.contexts import cleared, task_context
from tests.airflow.versions import AirflowFailException


@pytest.fixture
def context():
    return task_context("land")


@pytest.fixture
def log(monkeypatch):
    told = Mock()
    monkeypatch.setattr(BaseOperator, "log", told)
    return lambda: [each.args[0] % each.args[1:] for each in told.info.mock_calls]


@pytest.fixture(params=["start known", "start unknown"])
def expired(request, context, orders):
    """Expire the snapshot of the first run. Airflow may know when that run began, or not."""
    context["dag_run"].clear_number = int(request.param == "start unknown")

    def expire():
        for number in range(7, 10):
            orders().write(pa.table({"id": [number]}))
        orders().expire_snapshots(retain_max=1, retain_min=1)

    return expire


@pytest.fixture
def source(tmp_path):
    """Write the file of a day anew."""

    def write(*ids):
        (tmp_path / "day.csv").write_text("id\n" + "".join(f"{each}\n" for each in ids))
        return str(tmp_path / "day.csv")

    return write


def land(source, **more):
    return LakeIngestOperator(
        task_id="land", table="shop.orders", source=source, create=True, **more
    )


def returning(numbers):
    """A task whose function returns a row for each number."""
    return LakeCommitDecoratedOperator(
        task_id="land",
        table="shop.orders",
        python_callable=lambda: [{"id": each} for each in numbers],
    )


@pytest.fixture
def orders(warehouse):
    return lambda: lake.open_catalog(warehouse).table("shop.orders")


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_corrected_file_replaces_the_rows_of_the_first_run(source, orders, context, log):
    land(source(1, 2)).execute(context)
    orders().write(pa.table({"id": [9]}))

    done = land(source(1, 3)).execute(cleared(context))

    assert ids(orders()) == [1, 3, 9]
    assert (done["snapshot_id"], done["replayed"]) == (3, False)
    assert any("replaces the rows of snapshot 1" in each for each in log())


def test_a_dry_run_writes_no_record(source, orders, context, warehouse):
    land(source(1)).execute(context)
    table = orders()
    before = sorted(Path(warehouse, "shop.db/orders/run").iterdir())
    for task in (
        LakeRollbackOperator(task_id="back", table="shop.orders", snapshot=1, dry_run=True),
        LakeCompactOperator(task_id="compact", table="shop.orders", dry_run=True),
    ):
        task.execute(task_context(task.task_id))
    assert sorted(Path(warehouse, "shop.db/orders/run").iterdir()) == before
    assert table.latest_snapshot().id == 1


def test_a_dry_run_between_a_run_and_its_redo_changes_nothing(source, orders, context):
    land(source(1)).execute(context)
    shown = land(source(2), dry_run=True).execute(cleared(context))
    assert shown["reason"] == "dry run: 1 file would be added to shop.orders"
    land(source(3)).execute(cleared(context))
    assert ids(orders()) == [3]


def test_every_clear_does_the_work_again(source, orders, context):
    for number in range(1, 5):
        land(source(number)).execute(cleared(context))
        assert ids(orders()) == [number]


def test_a_retry_of_a_success_that_airflow_has_not_heard_of_changes_nothing(
    source, orders, context, log
):
    land(source(1)).execute(context)
    assert land(source(2)).execute(context)["replayed"]
    assert ids(orders()) == [1]
    assert any("an earlier attempt of this run has succeeded" in each for each in log())


@pytest.mark.parametrize("retries", [1, 2])
@pytest.mark.parametrize("tries", [1, 2])
def test_a_clear_after_retries_were_lowered_does_the_work_again(source, orders, retries, tries):
    """Airflow sets ``max_tries`` to the tries so far plus ``retries``: here, to what it was."""
    context = task_context("land", try_number=tries, max_tries=retries + tries - 1)
    land(source(1), retries=retries).execute(context)
    context["dag_run"].clear_number += 1
    context["ti"].try_number += 1
    assert not land(source(2), retries=retries - 1).execute(context)["replayed"]
    assert land(source(3), retries=retries - 1).execute(context)["replayed"]
    assert ids(orders()) == [2]


@pytest.mark.parametrize("tries", [1, 3])
@pytest.mark.parametrize("on_clear", ["redo", "force"])
def test_a_clear_of_another_task_does_not_repeat_a_success(source, orders, on_clear, tries):
    """The report of the success was lost, so Airflow retries the task, which was not cleared."""
    context = task_context("land", try_number=tries, max_tries=tries + 1)
    land(source(1), retries=2).execute(context)
    context["dag_run"].clear_number += 1
    context["ti"].try_number += 1
    assert land(source(2), retries=2, on_clear=on_clear).execute(context)["replayed"]
    assert ids(orders()) == [1]


def test_a_record_of_an_earlier_release_has_no_number_of_clears(source, orders, warehouse):
    context = task_context("land", max_tries=1)
    land(source(1), retries=1).execute(context)
    [path] = (orders_directory(warehouse) / "run").glob("run-*")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in record.items() if k not in ("clears", "attempt")}))
    context["dag_run"].clear_number += 1
    assert land(source(2)).execute(context)["replayed"]
    assert not land(source(2)).execute(cleared(context))["replayed"]


def test_a_run_that_was_created_again_does_the_work_again(source, orders, context, log):
    """Airflow starts it later, and gives its task the same ids and numbers as before."""
    land(source(1)).execute(context)
    again = task_context("land")
    again["dag_run"].start_date += timedelta(seconds=1)
    assert not land(source(2)).execute(again)["replayed"]
    assert any("or its run was created again: its work" in each for each in log())
    again["ti"].try_number += 1
    assert land(source(3)).execute(again)["replayed"]
    assert ids(orders()) == [2]


def test_a_run_that_was_cleared_and_then_created_again_does_the_work_again(source, orders):
    before = task_context("land")
    before["dag_run"].clear_number = 1
    land(source(1)).execute(before)
    assert not land(source(2)).execute(task_context("land"))["replayed"]
    assert ids(orders()) == [2]


def test_a_second_test_of_a_logical_date_does_the_work_again(source, orders):
    """``dag.test()`` starts each run of a logical date at this date."""

    def tested(try_number):
        context = task_context("land", try_number=try_number)
        run = context["dag_run"]
        run.start_date = run.logical_date = datetime(2024, 1, 31, tzinfo=UTC)
        return context

    land(source(1)).execute(tested(2))
    assert land(source(2)).execute(tested(3))["replayed"]
    assert not land(source(3)).execute(tested(1))["replayed"]
    assert ids(orders()) == [3]


def test_a_record_of_an_earlier_release_has_no_start_of_the_run(source, orders, warehouse):
    land(source(1)).execute(task_context("land"))
    [path] = (orders_directory(warehouse) / "run").glob("run-*")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in record.items() if k != "beganMillis"}))
    later = task_context("land")
    later["dag_run"].start_date += timedelta(seconds=1)
    assert land(source(2)).execute(later)["replayed"]
    assert not land(source(2)).execute(cleared(later))["replayed"]


@pytest.fixture
def dies(monkeypatch):
    """The task dies after its commit and before its success is recorded."""

    def execute(task, context):
        def die(*_, **__):
            raise LakeTaskKilled

        with monkeypatch.context() as dying:
            dying.setattr("airflow_provider_lake.outlet_events.announce", die)
            with pytest.raises(LakeTaskKilled):
                task.execute(context)

    return execute


def test_a_retry_after_a_commit_without_a_record_publishes_once(source, orders, context, dies):
    dies(land(source(1)), context)
    assert land(source(2)).execute(context)["replayed"]
    assert ids(orders()) == [1]


def test_a_clear_after_a_failure_is_a_retry(source, orders, context, dies):
    dies(land(source(1)), context)
    assert land(source(2)).execute(cleared(context))["replayed"]
    assert ids(orders()) == [1]


def test_a_retry_of_a_clear_publishes_once(source, orders, context, dies):
    land(source(1)).execute(context)
    dies(land(source(2)), cleared(context))
    assert land(source(3)).execute(context)["replayed"]
    assert ids(orders()) == [2]


def test_a_redo_replaces_one_that_died_before_a_skip(source, orders, context, dies):
    """The redo that died has published its rows, so ``skip`` keeps these."""
    land(source(1)).execute(context)
    dies(land(source(2)), cleared(context))
    kept = land(source(0), on_clear="skip").execute(cleared(context))
    assert (kept["snapshot_id"], kept["replayed"], ids(orders())) == (2, True, [2])
    again = land(source(3)).execute(cleared(context))
    assert (again["snapshot_id"], again["replayed"], ids(orders())) == (3, False, [3])


@pytest.mark.parametrize("clears", [0, 1], ids=["start known", "start unknown"])
def test_a_redo_replaces_rows_of_a_retry_that_died_after_a_success_without_rows(
    orders, context, dies, warehouse, clears
):
    """The worker died before Airflow knew of the success without rows, so the retry had to run."""
    context["dag_run"].clear_number = clears
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    returning([]).execute(context)
    dies(returning([1, 2]), context)
    orders().write(pa.table({"id": [9]}))
    for _ in range(2):
        again = returning([1, 3]).execute(cleared(context))
        assert (again["replayed"], ids(orders())) == (False, [1, 3, 9])


def test_skip_keeps_the_first_run_if_a_redo_died_before_its_commit(
    source, orders, context, monkeypatch
):
    land(source(1)).execute(context)
    died = land(source(2))
    monkeypatch.setattr(died, "_run", Mock(side_effect=LakeTaskKilled))
    with pytest.raises(LakeTaskKilled):
        died.execute(cleared(context))
    assert land(source(0), on_clear="skip").execute(cleared(context))["snapshot_id"] == 1
    land(source(3)).execute(cleared(context))
    assert ids(orders()) == [3]


def test_a_process_of_the_first_run_that_outlived_it_publishes_nothing(source, orders, context):
    land(source(1)).execute(context)
    user = orders().latest_snapshot().commit_user
    land(source(2)).execute(cleared(context))
    late = lake.CommitId(user, 1)
    assert orders().write(pa.table({"id": [1]}), commit=late).replayed
    assert ids(orders()) == [2]


def test_rows_that_a_rollback_removed_come_back(source, orders, context):
    orders_of_others = land(source(9))
    orders_of_others.execute({**task_context("other"), "outlet_events": context["outlet_events"]})
    land(source(1)).execute(context)
    orders().rollback(snapshot=1)
    land(source(1)).execute(cleared(context))
    assert ids(orders()) == [1, 9]


def test_skip_keeps_the_result_and_force_keeps_the_rows(source, orders, context, log):
    land(source(1)).execute(context)
    assert land(source(2), on_clear="skip").execute(cleared(context))["snapshot_id"] == 1
    land(source(3), on_clear="force").execute(cleared(context))
    assert ids(orders()) == [1, 3]
    assert any("on_clear='skip' keeps its result" in each for each in log())
    assert any("on_clear='force' keeps the rows of snapshot 1" in each for each in log())


def test_skip_does_nothing_after_the_snapshot_of_the_success_has_expired(
    source, orders, context, expired
):
    land(source(1)).execute(context)
    expired()
    kept = land(source(2), on_clear="skip", deferrable=True).execute(cleared(context))
    assert (kept["snapshot_id"], kept["replayed"], kept["skipped"]) == (1, True, False)
    assert kept["reason"].endswith("has published snapshot 1; nothing was done")
    again = land(source(3), on_clear="skip").execute(cleared(context))
    assert (again["snapshot_id"], ids(orders())) == (1, [1, 7, 8, 9])


def test_skip_does_nothing_if_the_machine_of_a_deferred_task_was_lost(
    source, orders, context, expired
):
    land(source(1)).execute(context)
    expired()
    task = land(source(2), on_clear="skip", deferrable=True)
    assert task.execute_complete(cleared(context), {"status": "ended"})["replayed"]
    assert ids(orders()) == [1, 7, 8, 9]


def test_a_retry_after_a_recorded_success_does_nothing_if_its_snapshot_has_expired(
    source, orders, context, expired
):
    land(source(1)).execute(context)
    expired()
    assert land(source(2)).execute(context)["snapshot_id"] == 1
    assert ids(orders()) == [1, 7, 8, 9]


def test_a_clear_of_the_publishing_task_alone_is_refused_if_its_snapshot_has_expired(
    source, orders, context, expired
):
    """The task was cleared to publish again, which its staged results do not allow."""
    land(source(1)).execute(task_context("other"))
    staged = land(source(2), stage=True).execute(task_context("stage"))["staged"]
    publish = LakeCommitOperator(task_id="land", table="shop.orders", staged=[staged])
    publish.execute(context)
    expired()
    assert publish.execute(context)["replayed"]
    with pytest.raises(AirflowFailException):
        publish.execute(cleared(context))
    assert ids(orders()) == [1, 2, 7, 8, 9]


def test_the_choice_is_logged_once_if_the_task_is_deferred(source, orders, context, log):
    land(source(1)).execute(context)
    task = land(source(2))
    for resumed in (False, True):
        task._is_resumed = resumed
        task._commit_id(cleared(context) if not resumed else context)
    assert sum("cleared after a success" in each for each in log()) == 1


def test_rows_that_were_compacted_are_named_before_anything_is_written(source, orders, context):
    land(source(1)).execute(context)
    orders().write(pa.table({"id": [9]}))
    orders().compact(strategy="full")
    with pytest.raises(AirflowFailException, match=r"lake delete \S+orders .*'force'"):
        land(source(2)).execute(cleared(context))
    assert ids(orders()) == [1, 9]


def test_newer_rows_of_a_key_are_not_undone(source, orders, context):
    keyed = {"primary_key": ["id"], "table_options": {"bucket": "1"}}
    land(source(1, 2), **keyed).execute(context)
    land(source(1), **keyed).execute(cleared(context))
    assert ids(orders()) == [1, 2]
    orders().write(pa.table({"id": [2]}))
    with pytest.raises(AirflowFailException, match=r"'sequence\.field'"):
        land(source(1), **keyed).execute(cleared(context))
    land(source(1), **keyed, on_clear="force").execute(cleared(context))


def test_a_redo_of_a_partial_update_keeps_values_where_the_new_ones_are_null(
    catalog, orders, context
):
    """A delete before a redo with ``force`` removes these values."""
    options = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("size", "BIGINT")],
        primary_key=["id"],
        options={"bucket": "1", **options},
    )

    def run(size, **more):
        LakeCommitDecoratedOperator(
            task_id="land",
            table="shop.orders",
            python_callable=lambda: pa.table({"id": [1], "size": pa.array([size], pa.int64())}),
            **more,
        ).execute(context)
        return orders().scan().to_arrow()["size"].to_pylist()

    assert run(7) == [7]
    cleared(context)
    assert run(None) == [7]
    orders().delete(where="id = 1")
    cleared(context)
    assert run(None, on_clear="force") == [None]


def test_an_overwrite_replaces_again(source, orders, context):
    land(source(1), overwrite="table").execute(context)
    land(source(2), overwrite="table").execute(cleared(context))
    assert ids(orders()) == [2]


@pytest.mark.parametrize("has_stream", [False, True], ids=["alone", "stream"])
def test_an_overwrite_in_transaction_order_replaces_its_rows_and_keeps_the_stream(
    source, orders, context, has_stream
):
    """The task that read the table is not cleared, so both runs have its position."""
    keyed = {"primary_key": ["id"], "table_options": {"bucket": "-1"}}
    land(source(1), **keyed).execute(task_context("other"))
    how = {
        "overwrite": "table",
        "read_snapshot": str(orders().position()),
        "conflict": "transaction-order",
    }
    if has_stream:
        orders().write(pa.table({"id": [7, 8]}))
    land(source(2, 3), **how).execute(context)
    if has_stream:
        orders().write(pa.table({"id": [3, 8]}), kinds=["+U", "-D"])
    again = land(source(2, 4), **how)
    assert not again.execute(cleared(context))["replayed"]
    expected = [2, 3, 4, 7] if has_stream else [2, 4]
    assert ids(orders()) == expected
    assert again.execute(context)["replayed"]
    assert ids(orders()) == expected


def test_rows_in_transaction_order_of_a_cleared_task_name_the_task_to_clear(
    source, orders, context
):
    keyed = {"primary_key": ["id"], "table_options": {"bucket": "1"}}
    land(source(1), **keyed).execute(task_context("other"))
    how = {"read_snapshot": str(orders().position()), "conflict": "transaction-order"}
    land(source(2), **how).execute(context)
    with pytest.raises(AirflowFailException, match="clear the task that read the table, too"):
        land(source(3), **how).execute(cleared(context))
    assert ids(orders()) == [1, 2]


def test_staged_rows_are_published_in_place_of_the_first_ones(source, orders, context):
    publishing = task_context("publish")

    def publish(staged):
        task = LakeCommitOperator(task_id="publish", table="shop.orders", staged=[staged])
        return task.execute(publishing)

    first = land(source(1), stage=True).execute(context)
    publish(first["staged"])
    cleared(publishing)
    assert publish(first["staged"])["replayed"]  # the task that staged them was not cleared
    again = land(source(2), stage=True).execute(cleared(context))
    cleared(publishing)
    publish(again["staged"])
    assert ids(orders()) == [2]


@pytest.fixture
def publish():
    def make(staged, **more):
        return LakeCommitOperator(task_id="publish", table="shop.orders", staged=[staged], **more)

    return make


@pytest.mark.parametrize("deferrable", [False, True])
def test_new_staged_rows_with_skip_name_the_choice_that_publishes_them(
    source, orders, context, publish, deferrable
):
    publishing = task_context("publish")
    publish(land(source(1), stage=True).execute(context)["staged"]).execute(publishing)
    staged = land(source(2), stage=True).execute(cleared(context))["staged"]
    task = publish(staged, on_clear="skip", deferrable=deferrable)
    with pytest.raises(
        AirflowFailException,
        match=r"snapshot 1, so nothing .* replace on_clear='skip' by 'redo', then clear this task$",
    ):
        task.execute(cleared(publishing))
    publish(staged).execute(cleared(publishing))
    assert ids(orders()) == [2]


@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize("choice", [None, "skip"])
def test_rows_staged_again_after_a_lost_publication_are_published_by_another_clear(
    source, orders, context, publish, dies, earlier, choice
):
    publishing = task_context("publish")
    for number in range(earlier):
        staged = land(source(number), stage=True).execute(cleared(context))["staged"]
        publish(staged).execute(cleared(publishing))
    staged = land(source(8), stage=True).execute(cleared(context))["staged"]
    dies(publish(staged), cleared(publishing))
    staged = land(source(9), stage=True).execute(cleared(context))["staged"]
    with pytest.raises(
        AirflowFailException, match=rf"snapshot {earlier + 1}, so nothing .* clear this task$"
    ):
        publish(staged, on_clear=choice).execute(cleared(publishing))
    assert ids(orders()) == [8]
    publish(staged).execute(cleared(publishing))
    assert ids(orders()) == [9]


def counted_calls(context, **more):
    """The calls so far, and a function that runs the task whose rows are the number of the call."""
    calls = []

    def load():
        calls.append(1)
        return [{"id": len(calls)}]

    def run():
        return LakeCommitDecoratedOperator(
            task_id="land", table="shop.orders", create=True, python_callable=load, **more
        ).execute(context)

    return calls, run


def test_a_function_is_called_again_and_its_rows_replaced(orders, context):
    calls, run = counted_calls(context)
    run()
    run()
    cleared(context)
    run()
    assert (len(calls), ids(orders())) == (2, [2])


def test_skip_calls_no_function_after_the_snapshot_has_expired(orders, context, expired):
    calls, run = counted_calls(context, on_clear="skip")
    run()
    expired()
    assert run()["replayed"]
    cleared(context)
    assert run()["snapshot_id"] == 1
    assert (len(calls), ids(orders())) == (1, [1, 7, 8, 9])


def test_a_cleared_compaction_compacts_again(source, orders, context):
    for number in range(2):
        land(source(number)).execute(task_context(f"land-{number}"))
    compact = LakeCompactOperator(task_id="compact", table="shop.orders")
    assert compact.execute(context)["snapshot_id"] == 3
    for number in range(2):
        orders().write(pa.table({"id": [number]}))
    assert compact.execute(cleared(context))["snapshot_id"] == 6


def test_a_success_that_cannot_be_recorded_is_still_one(
    source, orders, context, warehouse, monkeypatch
):
    told = Mock()
    monkeypatch.setattr(BaseOperator, "log", told)

    def refuse(*_):
        raise lake.UnavailableError("the disk is full")

    monkeypatch.setattr(lake.Table, "record_run", refuse)
    assert land(source(1)).execute(context)["snapshot_id"] == 1
    [warning] = [each.args[0] % each.args[1:] for each in told.warning.mock_calls]
    assert "(the disk is full), so a clear of this task will do nothing" in warning


def test_with_a_checkpoint_the_files_decide(source, orders, context, tmp_path):
    seen = {"checkpoint": str(tmp_path / "seen")}
    day = source(1)
    land(day, **seen).execute(context)
    assert land(day, **seen).execute(cleared(context))["skipped"]
    with pytest.raises(LakeArgumentError, match="'on_clear' has no effect with 'checkpoint'"):
        land(day, **seen, on_clear="force")
    with pytest.raises(AirflowFailException, match=r"day\.csv has changed since it was ingested"):
        land(source(2, 3), **seen).execute(cleared(context))


def test_a_wrong_word_is_refused_when_the_dag_is_parsed(source):
    with pytest.raises(LakeArgumentError, match="on_clear"):
        land(source(1), on_clear="again")


def test_the_record_lies_beside_the_table_and_is_no_orphan(source, orders, context, warehouse):
    land(source(1)).execute(context)
    [record] = (orders_directory(warehouse) / "run").glob("run-*")
    assert json.loads(record.read_text())["snapshotId"] == 1
    assert orders().remove_orphans("0 s", dry_run=True, allow_younger=True).removed_files == 0


def orders_directory(warehouse):
    return Path(warehouse.removeprefix("file://")) / "shop.db" / "orders"
