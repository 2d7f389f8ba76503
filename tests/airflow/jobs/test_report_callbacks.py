"""``on_report``: a function of the DAG's author gets the result, and cannot harm finished work."""

from __future__ import annotations

import pyarrow as pa
import pytest
from airflow.sdk import DAG

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException, AirflowSkipException


@pytest.fixture
def reports():
    return []


def run(operator, context=None, **arguments):
    task = operator(task_id="work", table="shop.orders", **arguments)
    return task.execute(context or task_context())


def test_the_function_gets_what_the_task_returns(orders, reports):
    result = run(LakeHealthOperator, on_report=reports.append)

    assert reports == [result]
    assert reports[0]["report"]["verdict"] == "empty"


def test_what_it_changes_there_does_not_change_the_result(orders):
    result = run(LakeHealthOperator, on_report=lambda result: result["report"].clear())

    assert result["report"]["verdict"] == "empty"


def test_its_failure_is_a_warning_and_the_work_stands(orders, tmp_path, caplog, reports):
    (tmp_path / "a.csv").write_text("id,item\n1,tea\n")

    def send(result):
        raise AirflowSkipException("no route to the chat")

    result = run(
        LakeIngestOperator, source=str(tmp_path / "a.csv"), on_report=[send, reports.append]
    )

    assert (result["snapshot_id"], orders.scan().count()) == (1, 1)
    assert reports == [result], "the next function is called all the same"
    [warning] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert warning.getMessage() == (
        "on_report: send failed with AirflowSkipException: no route to the chat; "
        "the result of the task does not change"
    )


def test_it_gets_the_result_of_a_task_that_is_skipped(orders, reports):
    with pytest.raises(AirflowSkipException):
        run(LakeCompactOperator, skip_if_noop=True, on_report=reports.append)

    assert [each["skipped"] for each in reports] == [True]


def test_it_gets_the_results_of_failed_checks(orders, reports):
    orders.write(pa.table({"id": [1, 1], "item": ["a", "b"]}))

    with pytest.raises(AirflowFailException):
        run(LakeCheckOperator, unique=["id"], on_report=reports.append)

    assert [each["report"]["failed"] for each in reports] == [1]


def test_it_gets_nothing_from_a_task_without_a_result(reports):
    with pytest.raises(AirflowFailException):
        run(LakeHealthOperator, on_report=reports.append)

    assert reports == []


def test_a_value_that_cannot_be_called_is_refused_when_the_dag_is_parsed():
    with pytest.raises(
        LakeArgumentError, match="'on_report' must be a function or a list, each item a"
    ):
        LakeHealthOperator(task_id="work", table="shop.orders", on_report="notify")


def test_mapped_tasks_keep_it(reports):
    with DAG("mapped", schedule=None):
        mapped = LakeHealthOperator.partial(task_id="look", on_report=reports.append).expand(
            table=["shop.a", "shop.b"]
        )

    assert mapped.partial_kwargs["on_report"] == reports.append
