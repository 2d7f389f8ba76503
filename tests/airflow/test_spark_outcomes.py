"""The outcome of a run on Spark: the table decides first, then the job; no result is a failure.

spark-submit is a program of this test that starts the real job, or misbehaves; real ones are
tested in ``test_spark_kill.py``.
"""

import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.identity import ONLY_COMMIT, commit_user
from airflow_provider_lake.operators.analyze import LakeAnalyzeOperator
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.compact_database import LakeCompactDatabaseOperator
from airflow_provider_lake.operators.delete import LakeDeleteOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.tag import LakeTagOperator
from spark_jobs.runtime.job import PartlyFailedError
from tests.airflow.contexts import task_context
from tests.airflow.deferred import AS_SPARK_DOES, WITHOUT_TASKS
from tests.airflow.versions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    since,
)


@pytest.fixture
def orders(catalog, connect):
    connect("spark_here", conn_type="spark", host="local[1]")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    return table


@pytest.fixture
def task(tmp_path):
    """A task on Spark, with a program in place of spark-submit."""

    def make(operator, code=AS_SPARK_DOES, **arguments):
        """``table=None``: the job is on no table."""
        program = tmp_path / "spark-submit"
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
        given = {"task_id": "work", "table": "shop.orders", "engine": "spark", **arguments}
        given = {name: value for name, value in given.items() if value is not None}
        return operator(**given, spark_conn_id="spark_here", spark_binary=str(program))

    return make


def test_what_the_job_says_is_the_result(orders, task):
    result = task(LakeTagOperator, action="create", tag="v1").execute(task_context())

    assert (result["job"], result["skipped"]) == ("tag", False)
    assert [tag.name for tag in orders.tags.list()] == ["v1"]


def test_nothing_to_do_is_no_failure_although_spark_says_so(orders, task):
    expire = task(LakeExpireSnapshotsOperator, retain_max=5, retain_min=1)

    assert expire.execute(task_context())["skipped"]
    with pytest.raises(AirflowSkipException):
        task(LakeExpireSnapshotsOperator, retain_max=5, retain_min=1, skip_if_noop=True).execute(
            task_context()
        )


def test_a_wrong_request_fails_for_good(orders, task):
    with pytest.raises(AirflowFailException, match=r"InvalidRequestError: .* got \['colour'\]"):
        task(LakeAnalyzeOperator, columns=["colour"]).execute(task_context())


def test_a_name_that_is_taken_fails_for_good(orders, task):
    orders.tags.create("v1")

    with pytest.raises(AirflowFailException, match="AlreadyExistsError: "):
        task(LakeTagOperator, action="create", tag="v1").execute(task_context())


def test_a_table_that_is_too_bad_fails_for_good(orders, task):
    for number in range(12):
        orders.write(pa.table({"id": [number]}))

    with pytest.raises(AirflowFailException, match=r"shop\.orders is degraded, score"):
        task(LakeHealthOperator, fail_when="degraded").execute(task_context())


def test_failed_checks_fail_for_good_and_their_results_are_kept(orders, task):
    context = task_context()
    checks = {"max_rows": 0, "not_null": ["id"], "conditions": ["id > 1"]}
    with pytest.raises(AirflowFailException, match=r"FailedChecksError: shop\.orders: 1 row: 3"):
        task(LakeCheckOperator, WITHOUT_TASKS, **checks, warn_only=["condition"]).execute(context)

    found = context["ti"].xcoms["return_value"]["report"]["checks"]
    assert [each["outcome"] for each in found] == ["failed", "passed", "warned"]


@pytest.mark.sampled(1, among="tasks with a real Spark")
def test_staged_rows_are_checked_in_tasks_of_spark(orders, task):
    with orders.new_writer() as writer:
        writer.write(pa.table({"id": [2, None]}))
        address = orders.staged.address(orders.staged.add(writer.prepare()).name)
    checks = {"staged": [address], "unique": ["id"], "not_null": ["id"], "warn_only": ["not_null"]}

    result = task(LakeCheckOperator, **checks).execute(task_context())

    assert [each["bad_rows"] for each in result["report"]["checks"]] == [1, 0]
    assert result["report"]["rows"] == 2


@pytest.fixture
def pair(tmp_path, connect):
    """A Mixed table with changes to merge, in a lake of Iceberg tables."""
    extra = {"warehouse": str(tmp_path / "iceberg"), "options": {"format": "iceberg"}}
    connect("lake_default", conn_type="lake", extra=extra)
    connect("spark_here", conn_type="spark", host="local[1]")
    made = lake.open_catalog(str(tmp_path / "iceberg"), format="iceberg")
    made.create_database("shop")
    table = made.create_table("shop.orders", [("id", "BIGINT")], format="mixed", primary_key=["id"])
    table.write(pa.table({"id": [1, 2, 3]}))
    return table


@pytest.mark.sampled(1, among="tasks with a real Spark")
def test_a_mixed_table_is_compacted_in_tasks_of_spark(pair, task):
    result = task(LakeCompactOperator).execute(task_context())

    assert (result["report"]["type"], result["report"]["changes_merged"]) == ("full", 6)
    assert sorted(pair.base.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert result["snapshot_id"] == pair.base.latest_snapshot().id


def test_rows_are_deleted_by_the_driver(pair, task):
    context = task_context()
    results = [task(LakeDeleteOperator, where="id < 3").execute(context) for _ in range(2)]

    assert [each["replayed"] for each in results] == [False, True]
    assert pair.scan().to_arrow()["id"].to_pylist() == [3]


def test_a_check_that_only_warns_is_a_warning_of_the_task(orders, task, capsys):
    checks = {"conditions": ["id > 1"], "warn_only": ["condition"]}
    task(LakeCheckOperator, WITHOUT_TASKS, **checks).execute(task_context())

    [warning] = [line for line in capsys.readouterr().out.splitlines() if "[warning" in line]
    assert "shop.orders: condition(id > 1): 1 of 1 row does not meet the condition" in warning


WITHOUT_A_MASTER = """
print("26/11/26 WARN StandaloneAppClient$ClientEndpoint: Failed to connect to master away:7077")
print("Caused by: java.net.UnknownHostException: away")
print("ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.")
print('LAKE_REPORT {"error": "Py4JJavaError", "message": "Cannot call methods on a stopped"}')
raise SystemExit(1)
"""


def test_a_master_that_does_not_answer_is_named_in_one_line(orders, task):
    with pytest.raises(AirflowException) as failed:
        task(LakeCompactOperator, WITHOUT_A_MASTER).execute(task_context())

    assert str(failed.value).startswith("Spark's master away:7077 does not answer: check that it")
    assert "connection 'spark_here'" in str(failed.value)
    assert not isinstance(failed.value, AirflowFailException), "a retry may find it"


@pytest.fixture
def broken(catalog):
    """A second table, whose manifests are lost."""
    table = catalog.create_table("shop.broken", [("id", "BIGINT")])
    for number in range(2):
        table.write(pa.table({"id": [number]}))
    for manifest in Path(urlsplit(table.location).path, "manifest").iterdir():
        manifest.unlink()
    return table


@pytest.mark.parametrize("engine", ["python", "spark"])
def test_a_database_that_failed_in_part_is_the_same_error_on_both_engines(
    orders, broken, task, told, engine
):
    orders.write(pa.table({"id": [2]}))
    given = {"task_id": "work", "database": "shop"}
    if engine == "spark":
        work = task(LakeCompactDatabaseOperator, WITHOUT_TASKS, table=None, **given)
    else:
        work = LakeCompactDatabaseOperator(engine=engine, **given)

    with pytest.raises(
        PartlyFailedError, match=r"1 of 2 tables failed; the first is shop\.broken: "
    ) as failed:
        work.execute(task_context())

    assert failed.value.is_conflict is False
    done = failed.value.result
    assert (done["job"], done["reason"]) == (
        "compact_database",
        "1 of 2 tables compacted, 1 failed",
    )
    assert [each["table"] for each in done["report"]["tables"]] == ["shop.broken", "shop.orders"]
    numbers = told.numbers()
    assert (numbers["failures"], numbers["files_in"], numbers["rows_in"]) == (1, 2, 2)
    tags = [tags for _, name, _, tags in told if name == "lake.rows_in"]
    assert tags == [{"job": "compact_database", "table": "shop.orders"}]


@pytest.mark.parametrize("engine", ["python", "spark"])
def test_a_compaction_that_failed_at_a_bucket_tells_what_it_did_to_others(
    catalog, connect, task, told, engine
):
    connect("spark_here", conn_type="spark", host="local[1]")
    columns = [("dt", "STRING"), ("id", "BIGINT")]
    days = catalog.create_table("shop.days", columns, partition_by=["dt"])
    for day in ("a", "b", "a", "b"):
        days.write(pa.table({"dt": [day], "id": [1]}))
    next(Path(urlsplit(days.location).path, "dt=a/bucket-0").iterdir()).unlink()
    given = {"table": "shop.days", "strategy": "full"}
    if engine == "spark":
        work = task(LakeCompactOperator, WITHOUT_TASKS, **given)
    else:
        work = LakeCompactOperator(task_id="work", engine=engine, **given)

    with pytest.raises(AirflowFailException, match="is missing") as failed:
        work.execute(task_context())

    reason = failed.value.__cause__
    assert isinstance(reason, lake.CorruptTableError)
    outcomes = {each["partition"]: each["outcome"] for each in reason.result["report"]["buckets"]}
    assert outcomes == {"dt=a": "failed", "dt=b": "compacted"}
    assert reason.result["snapshot_id"] == days.latest_snapshot().id == 5
    numbers = told.numbers()
    assert (numbers["failures"], numbers["files_in"], numbers["rows_in"]) == (1, 2, 2)


SAYS = """
import json, pathlib, sys
said = {said!r}
place = sys.argv[sys.argv.index("--result-uri") + 1]
if said:
    pathlib.Path(place).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(place).write_text(json.dumps(said))
sys.exit({code})
"""


def test_a_conflict_on_spark_is_the_same_error_as_here_and_is_retried(orders, task):
    said = {"job": "tag", "error": "CommitConflictError", "message": "another was first"}
    code = SAYS.format(said=said, code=20)

    with pytest.raises(lake.CommitConflictError, match="another was first"):
        task(LakeTagOperator, code, action="create", tag="v1").execute(task_context())


def test_an_error_nobody_foresaw_is_told_by_its_name_and_retried(orders, task):
    code = SAYS.format(said={"error": "KeyError", "message": "'x'"}, code=1)

    with pytest.raises(AirflowException, match="KeyError: 'x'") as failed:
        task(LakeTagOperator, code, action="create", tag="v1").execute(task_context())
    assert not isinstance(failed.value, AirflowFailException)


def test_a_driver_that_died_without_a_word_fails_with_the_end_of_its_log(orders, task):
    code = "import sys; print('OutOfMemoryError: heap'); sys.exit(137)"

    with pytest.raises(AirflowException, match=r"Error code is: 137\.(.|\n)*OutOfMemoryError"):
        task(LakeTagOperator, code, action="create", tag="v1").execute(task_context())


def test_silence_is_no_success(orders, task):
    with pytest.raises(AirflowException, match="returned no result: retry the task"):
        task(LakeTagOperator, "", action="create", tag="v1").execute(task_context())


def test_the_file_counts_where_the_line_was_lost(orders, task):
    said = {"job": "tag", "table": "shop.orders", "skipped": False, "reason": "well"}
    code = SAYS.format(said=said, code=0)

    result = task(LakeTagOperator, code, action="create", tag="v1").execute(task_context())

    assert result == said


def test_the_result_of_another_submission_is_not_taken_for_this_one_s(orders, task, tmp_path):
    arguments = {"action": "create", "tag": "v1", "result_folder": str(tmp_path / "results")}
    first = SAYS.format(said={"job": "tag", "skipped": False, "reason": "well"}, code=0)
    task(LakeTagOperator, first, **arguments).execute(task_context())
    assert len(list((tmp_path / "results").iterdir())) == 1

    with pytest.raises(AirflowException, match="returned no result"):
        task(LakeTagOperator, "", **arguments).execute(task_context())


def land(task, code, tmp_path):
    (tmp_path / "a.csv").write_text("id\n2\n")
    return task(LakeIngestOperator, code, source=str(tmp_path / "a.csv"))


def test_a_commit_that_is_there_is_a_success_whatever_spark_says(orders, task, tmp_path, warehouse):
    """The driver commits, and is killed before it can report it."""
    context = task_context()
    user = commit_user(context["ti"], "shop.orders")
    code = (
        "import sys; sys.path.insert(0, sys.argv[0]); import pyarrow as pa; import lakeformat\n"
        f"table = lakeformat.open_catalog({warehouse!r}).table('shop.orders')\n"
        f"commit = lakeformat.CommitId({user!r}, {ONLY_COMMIT})\n"
        "table.write(pa.table({'id': [2]}), commit=commit)\n"
        "sys.exit(137)"
    )

    result = land(task, code, tmp_path).execute(context)

    assert (result["snapshot_id"], result["replayed"]) == (2, True)
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2]


def test_a_retry_that_finds_its_commit_starts_no_spark(orders, task, tmp_path):
    context = task_context()
    user = commit_user(context["ti"], "shop.orders")
    orders.write(pa.table({"id": [2]}), commit=lake.CommitId(user, ONLY_COMMIT))

    result = land(task, "import sys; sys.exit(99)", tmp_path).execute(context)

    assert (result["snapshot_id"], result["replayed"]) == (2, True)


def test_an_unknown_table_fails_before_anything_is_submitted(orders, task, tmp_path):
    started = tmp_path / "started"
    code = f"import pathlib; pathlib.Path({str(started)!r}).touch()"

    with pytest.raises(AirflowFailException, match="NotFoundError: "):
        task(LakeTagOperator, code, table="shop.items", action="create", tag="v1").execute(
            task_context()
        )
    assert not started.exists()


def test_a_driver_elsewhere_needs_a_place_for_its_result(orders, task):
    tag = task(LakeTagOperator, action="create", tag="v1", deploy_mode="cluster")

    with pytest.raises(AirflowFailException, match="needs argument 'result_folder'"):
        tag.execute(task_context())


@since("3.3", "the state that a task keeps, such as the id of its driver")
def test_settings_the_stock_operator_cannot_follow_fail_for_good(orders, task, connect, tmp_path):
    connect("spark_here", conn_type="spark", host="yarn")
    tag = task(
        LakeTagOperator,
        action="create",
        tag="v1",
        deploy_mode="cluster",
        result_folder=str(tmp_path),
    )

    with pytest.raises(AirflowFailException, match=r"'work': .*yarn_track_via_rm_api"):
        tag.execute(task_context())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"where": "dt ="}, "InvalidRequestError: "),
        ({"where": "price > 1"}, "InvalidRequestError: "),
        ({"partitions": {"dt": "2024-01-31"}}, "'dt' is not a partition column"),
    ],
)
def test_partitions_the_table_cannot_have_are_refused_before_anything_is_submitted(
    orders, task, given, words
):
    work = task(LakeCompactOperator, "import sys; sys.exit('nobody should start this')", **given)

    with pytest.raises(AirflowFailException, match=words):
        work.execute(task_context())
    assert work._submission is None


def test_a_condition_on_many_tables_that_is_no_sql_is_refused_before_anything_is_submitted(orders):
    work = LakeCompactDatabaseOperator(
        task_id="work", database="shop", where="dt =", engine="spark", spark_conn_id="spark_here"
    )

    with pytest.raises(AirflowFailException, match="InvalidRequestError: "):
        work.execute(task_context())
    assert work._submission is None


def test_what_is_nothing_for_spark_is_refused_before_anything_is_submitted(
    orders, connect, warehouse
):
    """The connection, and no argument, selects engine Spark."""
    connect("lake_spark", conn_type="lake", extra={"warehouse": warehouse, "engine": "spark"})
    work = LakeCompactOperator(
        task_id="work", table="shop.orders", lake_conn_id="lake_spark", bucket_executor="serial"
    )

    with pytest.raises(AirflowFailException, match="'executor' needs engine 'python'"):
        work.execute(task_context())
    assert work._submission is None


def test_a_request_too_long_for_an_argument_travels_as_a_private_file(orders, task, tmp_path):
    code = (
        "import os, stat, sys; place = sys.argv[sys.argv.index('--request') + 1]\n"
        "print('MODE', oct(stat.S_IMODE(os.stat(place).st_mode)))" + AS_SPARK_DOES
    )
    many = [f"{tmp_path}/{number:0200}" for number in range(600)]
    commit = task(LakeCommitOperator, code, staged=many)

    with pytest.raises(AirflowFailException) as failed:
        commit.execute(task_context())

    assert "MODE 0o600" in list(commit._submission._hook._last_submit_log_lines)
    assert many[0] in str(failed.value)


def compact_as_flink(table):
    """A compaction that does not bear the mark of ours."""
    table.write(pa.table({"id": [2]}))
    table.compact()
    handle, snapshot = table._handle, table.latest_snapshot()
    foreign = replace(snapshot, properties=None, commit_user="flink")
    handle.storage.overwrite(handle.layout.snapshot(snapshot.id), foreign.to_json())
    table.write(pa.table({"id": [3]}))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["python", "spark"])
@pytest.mark.parametrize("operator", [LakeCompactOperator, LakeCompactDatabaseOperator])
def test_another_program_that_compacts_is_a_warning_in_the_log_of_the_task(
    orders, task, caplog, capsys, operator, engine
):
    compact_as_flink(orders)
    is_database = operator is LakeCompactDatabaseOperator
    given = {"task_id": "work", **({"database": "shop"} if is_database else {})}
    if engine == "spark":
        table = {"table": None} if is_database else {}
        work = task(operator, WITHOUT_TASKS, **given, **table)
    else:
        work = operator(engine=engine, **given, **({} if is_database else {"table": "shop.orders"}))

    work.execute(task_context())

    said = caplog.text if engine == "python" else capsys.readouterr().out
    [warning] = [line for line in said.splitlines() if "another program compacts" in line]
    assert "warning" in warning.lower()
    assert "commit user 'flink', last in snapshot 3" in warning
    assert "lake set-option shop.orders write-only=true, then restart that program" in warning
