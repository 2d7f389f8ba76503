"""A failure is retried only if a retry can succeed."""

from __future__ import annotations

import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.failures import failing_for_good, raise_failure
from spark_jobs.runtime import command
from tests.airflow.versions import AirflowFailException


def conflict(*, is_final):
    error = lake.CommitConflictError("the rows were computed from snapshot 3")
    error.is_final = is_final
    return error


def fail(error, *, is_elsewhere):
    """Fail as a job in this process, or as one in another process that reports its failure."""
    with failing_for_good():
        if is_elsewhere:
            failed = command._failure("ingest", error, command.CONFLICT, {})
            raise_failure(failed, RuntimeError())
        raise error


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_only_a_conflict_that_is_not_final_is_retried(is_elsewhere):
    with pytest.raises(AirflowFailException, match="CommitConflictError: the rows were computed"):
        fail(conflict(is_final=True), is_elsewhere=is_elsewhere)
    with pytest.raises(lake.CommitConflictError):
        fail(conflict(is_final=False), is_elsewhere=is_elsewhere)


def test_the_next_attempt_opens_a_table_that_was_replaced():
    with pytest.raises(lake.TableReplacedError):
        fail(lake.TableReplacedError("dropped and created again"), is_elsewhere=False)
