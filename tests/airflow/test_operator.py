"""The ingest operator: parameters in, one run of the job, and retries only where they can help."""

from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

import lakeformat as lake
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from tests.airflow.contexts import task_context


@pytest.fixture
def context():
    return task_context("land")


def land(**more):
    return LakeIngestOperator(task_id="land", table="shop.orders", **more)


def test_it_lands_files_once_for_each_run(tmp_path, warehouse, context):
    (tmp_path / "a.csv").write_text("id\n1\n")
    task = land(source=str(tmp_path / "*.csv"), create=True)

    first, again = task.execute(context), task.execute(context)
    context["ti"].run_id = "manual__2"
    other = task.execute(context)

    assert [r["snapshot_id"] for r in (first, again, other)] == [1, 1, 2]
    assert [r["replayed"] for r in (first, again, other)] == [False, True, False]


@pytest.fixture
def expired(tmp_path, warehouse, context):
    """A task whose files are landed, and whose snapshot has expired since."""
    (tmp_path / "a.csv").write_text("id\n1\n")
    task = land(source=str(tmp_path / "*.csv"), create=True)
    task.execute(context)
    orders = lake.open_catalog(warehouse).table("shop.orders")
    orders.write(orders.scan().to_arrow())
    (Path(warehouse) / "shop.db" / "orders" / "snapshot" / "snapshot-1").unlink()
    return task, orders


def test_a_retry_after_its_snapshot_has_expired_publishes_nothing(expired, context):
    task, orders = expired
    with pytest.raises(AirflowFailException, match="have expired since its first try"):
        task.execute(context)
    assert orders.latest_snapshot().id == 2


def test_a_clear_after_its_snapshot_has_expired_is_not_recognised(expired, context):
    """As the documentation says: Airflow does not keep when the run first began."""
    task, _ = expired
    context["dag_run"].clear_number = 1
    assert not task.execute(context)["replayed"]


def test_a_request_that_stays_wrong_is_not_retried(tmp_path, warehouse, context):
    (tmp_path / "a.txt").write_text("id\n1\n")

    with pytest.raises(AirflowFailException, match=r"InvalidRequestError: .*a\.txt"):
        land(source=str(tmp_path / "a.txt"), create=True).execute(context)


def test_files_that_may_still_come_are_retried(tmp_path, warehouse, context):
    with pytest.raises(lake.NotFoundError, match="matches no file"):
        land(source=str(tmp_path / "*.csv"), create=True).execute(context)


def test_an_argument_it_does_not_know_is_refused():
    with pytest.raises(TypeError, match="tabel"):
        LakeIngestOperator(task_id="land", table="shop.orders", source="*", tabel="x")


@pytest.mark.parametrize("content", ["é\n1\n", "id\né\n"])
def test_a_file_that_is_not_utf8_is_not_retried(tmp_path, warehouse, context, content):
    (tmp_path / "a.csv").write_text(content, encoding="latin-1")

    with pytest.raises(AirflowFailException, match=r"a\.csv: it is not UTF-8"):
        land(source=str(tmp_path / "a.csv"), create=True).execute(context)
