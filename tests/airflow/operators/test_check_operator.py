"""Rows are checked between staging and publication: bad rows are never seen by a reader."""

from __future__ import annotations

import json
from itertools import count
from unittest.mock import Mock

import pyarrow as pa
import pytest
from airflow.sdk import DAG, chain, task, task_group

from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from tests.airflow.contexts import cleared, task_context
from tests.airflow.versions import AirflowFailException


@pytest.fixture
def orders(catalog):
    return catalog.create_table("shop.orders", [("id", "BIGINT"), ("status", "STRING")])


def stage(tmp_path, rows, run="land", context=None):
    (tmp_path / "a.csv").write_text(f"id,status\n{rows}")
    source = str(tmp_path / "a.csv")
    operator = LakeIngestOperator(task_id=run, table="shop.orders", source=source, stage=True)
    return operator.execute(context or task_context(run))["staged"]


def check(context=None, **checks):
    operator = LakeCheckOperator(task_id="check", table="shop.orders", **checks)
    return operator.execute(context or task_context("check"))


def test_good_rows_go_on_to_the_commit(orders, tmp_path):
    staged = stage(tmp_path, "1,new\n2,paid\n")

    result = check(staged=[staged], min_rows=2, not_null=["id"], unique=["id"])

    assert (result["staged"], result["snapshot_id"]) == ([staged], None)
    assert result["reason"] == "3 checks of 2 staged rows passed"
    commit = LakeCommitOperator(task_id="publish", table="shop.orders", staged=result["staged"])
    assert commit.execute(task_context("publish"))["snapshot_id"] == 1


def test_bad_rows_fail_the_task_for_good_with_examples_and_the_next_step(orders, tmp_path):
    staged = stage(tmp_path, "1,new\n2,paied\n")

    with pytest.raises(AirflowFailException) as failed:
        check(staged=[staged], accepted_values={"status": ["new", "paid"]})

    assert str(failed.value) == (
        "FailedChecksError: shop.orders: 2 staged rows: 1 check, 1 failed. "
        "accepted_values(status): 1 of 2 rows has a value other than 'new', 'paid', such as id=2, "
        "status='paied': correct these rows in the source, and write them again. Nothing was "
        "published: stage the corrected rows (in Airflow: clear the task that staged the rows). "
        "The staged files are kept; with discard_failed=True a failed check deletes them. "
        "remove_orphans with staged_older_than and dry_run=False deletes old ones"
    )
    assert orders.latest_snapshot() is None
    assert len(orders.staged.list()) == 1


def test_discarded_rows_can_be_staged_again_by_a_cleared_task(orders, tmp_path):
    checks = {"conditions": ["id > 0"], "discard_failed": True}
    with pytest.raises(AirflowFailException, match="The staged files were deleted"):
        check(staged=[stage(tmp_path, "-1,new\n")], **checks)
    assert orders.staged.list() == []

    corrected = stage(tmp_path, "1,new\n")

    assert check(staged=[corrected], **checks)["report"]["rows"] == 1


def test_the_results_of_a_failed_task_are_in_xcom_as_small_json(orders):
    orders.write(pa.table({"id": [1] * 500, "status": ["new"] * 500}))
    context = task_context("check")

    with pytest.raises(AirflowFailException):
        check(context, unique=["id"], max_rows=1000)

    result = context["ti"].xcoms["return_value"]
    rows, unique = result["report"]["checks"]
    assert rows["outcome"] == "passed"
    assert (unique["outcome"], unique["bad_rows"], unique["examples"]) == ("failed", 500, ["id=1"])
    assert len(json.dumps(result)) < 2000


def test_a_check_that_only_warns_is_logged_as_a_warning(orders, caplog):
    orders.write(pa.table({"id": [1], "status": [None]}))

    check(not_null=["status"], warn_only=["not_null"])

    [warning] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert warning.getMessage() == (
        "shop.orders: not_null(status): 1 of 1 row has a null, such as id=1, status=NULL: "
        "correct these rows in the source, and write them again"
    )


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ({}, "no check was given"),
        ({"not_null": "id"}, "'not_null' must be a list"),
        ({"min_rows": 1, "warn_only": ["row"]}, "did you mean 'rows'"),
        ({"freshness": {"day": "soon"}}, "an age such as '1 d'"),
        ({"accepted_values": {"status": "new"}}, "accepted_values"),
        ({"min_rows": 1, "discard_failed": True}, "needs argument 'staged'"),
    ],
)
def test_a_mistake_is_refused_when_the_dag_is_parsed(checks, message):
    with pytest.raises(LakeArgumentError, match=message):
        LakeCheckOperator(task_id="check", table="shop.orders", **checks)


def test_a_mistake_is_found_although_the_staged_results_are_not_known_yet():
    staged = "{{ ti.xcom_pull('land') }}"
    with pytest.raises(LakeArgumentError, match="did you mean 'unique'"):
        LakeCheckOperator(
            task_id="check", table="shop.orders", staged=staged, unique=["id"], warn_only=["uniqe"]
        )


@pytest.fixture
def run_of_three(orders, tmp_path):
    """A run that stages, checks and publishes rows; from its second call on it is cleared."""
    with DAG("shop", schedule=None):
        unique = LakeCheckOperator(
            task_id="check", table="shop.orders", staged=["later"], unique=["id"]
        )
        publish = LakeCommitOperator(task_id="publish", table="shop.orders", staged=["later"])
        unique >> publish
    contexts = {name: task_context(name) for name in ("land", "check", "publish")}
    calls = count()

    def run(rows):
        for context in contexts.values() if next(calls) else ():
            cleared(context)["ti"].try_number += 1
        publish.staged = unique.staged = [stage(tmp_path, rows, context=contexts["land"])]
        unique.execute(contexts["check"])
        publish.execute(contexts["publish"])

    return run


def test_rows_that_a_cleared_run_will_replace_are_no_repetition(orders, run_of_three):
    orders.write(pa.table({"id": [7], "status": ["new"]}))
    run_of_three("1,new\n")
    run_of_three("1,paid\n")
    assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [1, 7]
    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows .* such as id=7"):
        run_of_three("7,new\n")


def test_the_rows_of_another_writer_after_a_rollback_are_repetitions(orders, run_of_three):
    orders.write(pa.table({"id": [100], "status": ["new"]}))
    run_of_three("1,new\n")
    orders.rollback(snapshot=1, as_latest=False)
    orders.write(pa.table({"id": [7], "status": ["new"]}))  # snapshot 2, like the rows of the run

    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows .* such as id=7"):
        run_of_three("7,new\n")


def test_an_unrecorded_commit_does_not_block_the_check(orders, run_of_three, monkeypatch):
    """Publish rows, and end before the success is recorded: the first time, and after a clear."""
    for id_ in 1, 2:
        with monkeypatch.context() as ended:
            ended.setattr(LakeCommitOperator, "_record_success", Mock(side_effect=EOFError))
            with pytest.raises(EOFError):
                run_of_three(f"{id_},new\n")
        with pytest.raises(AirflowFailException, match=r"published other staged results before"):
            run_of_three(f"{id_},paid\n")
        assert orders.scan().to_arrow().to_pylist() == [{"id": id_, "status": "new"}]
    run_of_three("2,paid\n")
    assert orders.scan().to_arrow().to_pylist() == [{"id": 2, "status": "paid"}]


@pytest.fixture
def cleared_run(orders, tmp_path):
    """A run that publishes the id 1; then it is cleared, and its file has the ids 1 and 2."""

    def run(check, publish, map_index=-1):
        for rows in "1,new\n", "1,new\n2,new\n":
            contexts = {
                each: task_context(each, map_index=map_index)
                for each in ("land", check.task_id, publish.task_id)
            }
            if "2" in rows:
                for context in contexts.values():
                    cleared(context)
            staged = json.dumps([stage(tmp_path, rows, context=contexts["land"])])
            known = {"params": {"table": "shop.orders"}, "later": staged}
            first, second = check.prepare_for_execution(), publish.prepare_for_execution()
            first.render_template_fields(contexts[check.task_id] | known)
            second.staged, second.table = (
                first.execute(contexts[check.task_id])["staged"],
                "shop.orders",
            )
            second.execute(contexts[publish.task_id])
        return sorted(orders.scan().to_arrow()["id"].to_pylist())

    return run


def tasks_of(name="check", table="shop.orders", **of_commit):
    check = LakeCheckOperator(task_id=name, table=table, staged="{{ later }}", unique=["id"])
    of_commit = {"task_id": f"{name}-publish", "staged": check.output["staged"]} | of_commit
    return check, LakeCommitOperator(table=table, **of_commit)


def test_rows_that_a_forced_clear_keeps_are_repetitions(cleared_run):
    with DAG("shop", schedule=None):
        check, publish = tasks_of(on_clear="force")
        check >> publish
    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows .* such as id=1"):
        cleared_run(check, publish)


@pytest.mark.parametrize("of_commit", [{}, {"staged": "{{ later }}"}])
def test_the_commit_of_the_checked_rows_is_found_among_several(cleared_run, of_commit):
    with DAG("shop", schedule=None):
        check, publish = tasks_of(**of_commit)
        chain(check, publish, *(each for name in "abcdef" for each in tasks_of(name)))
    assert cleared_run(check, publish) == [1, 2]


def test_the_commit_that_uses_the_checked_rows_is_found_beside_others(cleared_run):
    with DAG("shop", schedule=None):
        check, publish = tasks_of()
        beside = [tasks_of(name)[1] for name in "abcdef"]
        check >> [publish, *beside]
    assert cleared_run(check, publish) == [1, 2]


def test_a_commit_in_the_same_mapped_group_has_the_same_index(cleared_run):
    made = []

    @task_group
    def group(name):
        made.extend(tasks_of())
        made[0] >> made[1]

    with DAG("shop", schedule=None):
        group.expand(name=["a", "b", "c"])
    check, publish = made
    assert cleared_run(check, publish, map_index=2) == [1, 2]


def test_the_commit_is_found_if_the_name_of_the_table_is_a_template(cleared_run):
    with DAG("shop", schedule=None):
        check, publish = tasks_of(table="{{ params.table }}")
        check >> publish
    assert cleared_run(check, publish) == [1, 2]


def mapped_tasks(into_commit, defaults=None, **of_commit):
    """A mapped check, and a mapped commit that gets the results from ``into_commit``."""
    given = {} if "table" in (defaults or {}) else {"table": "shop.orders"}
    with DAG("shop", schedule=None, default_args=defaults or {}):
        check = LakeCheckOperator.partial(task_id="check", unique=["id"], **given).expand(
            staged=[["a"], ["b"], ["c"]]
        )
        publish = LakeCommitOperator.partial(task_id="publish", **given, **of_commit).expand(
            staged=into_commit(check.output)
        )
    return check, publish


@pytest.fixture
def cleared_mapped_run(orders, tmp_path):
    """A cleared run of mapped tasks. The last file had the id 1, and now has the ids 1 and 2."""

    def run(check, publish):
        tasks = "land", "check", "publish"
        contexts = {name: task_context(name, map_index=2) for name in tasks}
        for rows in "1,new\n", "1,new\n2,new\n":
            given = {"staged": [stage(tmp_path, rows, context=contexts["land"])]}
            check.unmap(given).execute(contexts["check"])
            publish.unmap(given).execute(contexts["publish"])
            for context in contexts.values():
                cleared(context)
        return sorted(orders.scan().to_arrow()["id"].to_pylist())

    return run


@task
def addresses(result):
    return result["staged"]


@task
def shuffled(results):
    return [each["staged"] for each in reversed(results)]


@task
def repeated(result, number):
    return result["staged"]


@pytest.mark.parametrize(
    "into_commit",
    [
        lambda results: results.map(lambda result: result["staged"]),
        lambda results: addresses.expand(result=results),
    ],
)
def test_a_mapped_commit_replaces_the_rows_of_the_same_index(cleared_mapped_run, into_commit):
    assert cleared_mapped_run(*mapped_tasks(into_commit)) == [1, 2]


@pytest.mark.parametrize(
    "into_commit",
    [shuffled, lambda results: repeated.expand(result=results, number=[1, 2])],
)
def test_a_mapped_commit_may_have_other_indexes_than_the_check(cleared_mapped_run, into_commit):
    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows .* such as id=1"):
        cleared_mapped_run(*mapped_tasks(into_commit))


@pytest.mark.parametrize("defaults", [{"table": "shop.orders"}, {"on_clear": "redo"}])
def test_a_mapped_commit_is_found_by_default_arguments(cleared_mapped_run, defaults):
    tasks = mapped_tasks(lambda results: addresses.expand(result=results), defaults)
    assert cleared_mapped_run(*tasks) == [1, 2]


def test_a_mapped_commit_may_be_forced_by_default_arguments(cleared_mapped_run):
    tasks = mapped_tasks(lambda results: addresses.expand(result=results), {"on_clear": "force"})
    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows .* such as id=1"):
        cleared_mapped_run(*tasks)


def test_rows_that_a_forced_clear_of_a_mapped_commit_keeps_are_repetitions(cleared_mapped_run):
    tasks = mapped_tasks(lambda results: addresses.expand(result=results), on_clear="force")
    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows .* such as id=1"):
        cleared_mapped_run(*tasks)
