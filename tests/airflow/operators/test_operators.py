"""Every job has an operator, whose arguments are exactly the keys of the job's request."""

from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Literal, get_type_hints
from unittest.mock import Mock

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from airflow.sdk.bases.operator import BaseOperator

import lakeformat as lake
from airflow_provider_lake.arguments.declared import argument_types
from airflow_provider_lake.jobs.cleared_tasks import OnClear
from airflow_provider_lake.jobs.failures import LakeTaskKilled, failing_for_good
from airflow_provider_lake.jobs.job import attribute_of
from airflow_provider_lake.operators.analyze import LakeAnalyzeOperator
from airflow_provider_lake.operators.changelog import LakeChangelogOperator
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.compact_database import LakeCompactDatabaseOperator
from airflow_provider_lake.operators.delete import LakeDeleteOperator
from airflow_provider_lake.operators.expire_partitions import LakeExpirePartitionsOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.job import LakeJobOperator, LakeWarehouseJobOperator
from airflow_provider_lake.operators.maintain import LakeMaintainOperator
from airflow_provider_lake.operators.publish import LakePublishOperator
from airflow_provider_lake.operators.remove_orphans import LakeRemoveOrphansOperator
from airflow_provider_lake.operators.rescale import LakeRescaleOperator
from airflow_provider_lake.operators.rollback import LakeRollbackOperator
from airflow_provider_lake.operators.tag import LakeTagOperator
from airflow_provider_lake.operators.update import LakeUpdateOperator
from spark_jobs import compact_database
from spark_jobs.runtime.registry import JOB_NAMES, find_job
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException, AirflowSkipException
from tests.crashed_writer import BUCKETS, crashed_table
from tests.unit.publish.published import iceberg, unobserved

OPERATORS = [
    LakeAnalyzeOperator,
    LakeChangelogOperator,
    LakeCheckOperator,
    LakeCommitOperator,
    LakeCompactOperator,
    LakeDeleteOperator,
    LakeExpirePartitionsOperator,
    LakeExpireSnapshotsOperator,
    LakeHealthOperator,
    LakeIngestOperator,
    LakeMaintainOperator,
    LakePublishOperator,
    LakeRemoveOrphansOperator,
    LakeRescaleOperator,
    LakeRollbackOperator,
    LakeTagOperator,
    LakeUpdateOperator,
]
EVERY_OPERATOR = [*OPERATORS, LakeCompactDatabaseOperator]
REQUIRED = {
    LakeCheckOperator: {"min_rows": 1},
    LakeCommitOperator: {"staged": ["s"]},
    LakeDeleteOperator: {"where": "id = 1"},
    LakeIngestOperator: {"source": "*.csv"},
    LakeRollbackOperator: {"snapshot": 1},
    LakeTagOperator: {"action": "create", "tag": "v1"},
    LakeUpdateOperator: {"where": "id = 1", "set": {"item": "fig"}},
}


def make(operator, **arguments):
    subject = {"table": "shop.orders"} if operator in OPERATORS else {"database": "shop"}
    given = {"task_id": "work", **subject, **REQUIRED.get(operator, {})}
    return operator(**given | arguments)


def do(operator, context=None, **arguments):
    return make(operator, **arguments).execute(context or task_context())


@pytest.fixture
def orders(catalog):
    """A table with a key, a partition and a changelog, and two commits in it."""
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("item", "STRING")],
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "1", "changelog-producer": "full-compaction"},
    )
    for item in ("apple", "pear"):
        table.write(pa.table({"id": [1], "dt": ["2024-01-01"], "item": [item]}))
    return table


def test_every_job_has_its_operator():
    assert {operator.job for operator in EVERY_OPERATOR} == {*JOB_NAMES}
    for operator in EVERY_OPERATOR:
        assert operator.__module__.endswith(f".{operator.job}")
        assert operator.request is find_job(operator.job).request


@pytest.mark.parametrize("operator", EVERY_OPERATOR)
def test_the_arguments_of_an_operator_are_the_keys_of_its_request(operator):
    common = {field.name for field in fields(lake_common())}
    wanted = {
        ("bucket_executor" if field.name == "executor" else field.name): hint
        for field in fields(operator.request)
        if field.name not in common
        for hint in [get_type_hints(operator.request)[field.name]]
    }
    own = argument_types(operator, LakeWarehouseJobOperator)
    base = argument_types(LakeJobOperator, LakeWarehouseJobOperator)

    if operator is LakeIngestOperator:
        wanted["jdbc_conn_id"] = str | None  # a login is not an argument of a task
        wanted["ingest_again"] = bool  # of it, the task and the run the operator makes two keys
        del wanted["ingested_by"], wanted["ingested_in"]
    if operator in (LakeIngestOperator, LakeCommitOperator):
        wanted["on_clear"] = OnClear | None  # what is done again is decided before the job
    if operator in (LakeDeleteOperator, LakeUpdateOperator):
        wanted["on_clear"] = Literal["redo", "skip"] | None
    assert {name: hint for name, hint in own.items() if name not in base} == wanted


def lake_common():
    return import_module("spark_jobs.job_requests.common").CommitRequest


@pytest.mark.parametrize("operator", EVERY_OPERATOR)
def test_every_argument_is_a_template_and_hides_nothing_of_airflow(operator):
    arguments = argument_types(operator, LakeWarehouseJobOperator).keys() - {"on_report"}
    attributes = {attribute_of(name) for name in arguments}  # a function is no template

    assert attributes <= set(operator.template_fields)
    own = attributes - {attribute_of(name) for name in LakeJobOperator.template_fields}
    assert [name for name in own if hasattr(BaseOperator, name)] == []
    assert set(make(operator).template_fields) <= set(dir(make(operator)))


def test_a_table_is_fed_kept_and_cleaned_by_operators_alone(tmp_path, orders, monkeypatch):
    said = []
    monkeypatch.setattr(BaseOperator, "log", Mock(info=lambda *words: said.append(words)))
    (tmp_path / "a.csv").write_text("id,dt,item\n2,2024-01-02,plum\n")

    staged = do(LakeIngestOperator, source=str(tmp_path / "*.csv"), stage=True)
    published = do(LakeCommitOperator, staged=[staged["staged"]])
    compacted = do(LakeCompactOperator, strategy="full")
    tagged = do(LakeTagOperator, action="create", tag="v1")
    analyzed = do(LakeAnalyzeOperator, columns="all")
    healthy = do(LakeHealthOperator)
    gone = do(LakeExpirePartitionsOperator, expiration_time="1 d", timestamp_formatter="yyyy-MM-dd")
    back = do(LakeRollbackOperator, task_context("back"), snapshot=None, tag="v1")  # a commit, too
    expired = do(LakeExpireSnapshotsOperator, retain_max=1, retain_min=1)
    orphans = do(LakeRemoveOrphansOperator)
    told = do(LakeChangelogOperator)
    rescaled = do(LakeRescaleOperator, bucket=2)

    assert [staged["snapshot_id"], published["snapshot_id"]] == [None, 3]
    assert (compacted["previous_snapshot_id"], compacted["snapshot_id"]) == (3, 4)
    assert sorted(row["item"] for row in orders.scan().to_arrow().to_pylist()) == ["pear", "plum"]
    results = [tagged, analyzed, healthy, gone, back, expired, orphans, told, rescaled]
    for result in [staged, published, compacted, *results]:
        assert {"job", "table", "skipped", "reason", "snapshot_id", "previous_snapshot_id"} <= set(
            result
        )
        assert {"replayed", "seconds", "report"} <= set(result)
        numbers = ": 1 row in 1 file" if result is published else ""
        assert ("%s: %s", "shop.orders", result["reason"] + numbers) in said
    assert gone["report"]["dry_run"] is False
    assert orphans["report"]["dry_run"] is True
    assert healthy["report"]["score"] > 0


def test_commits_of_other_engines_are_published_and_a_repeat_may_be_skipped(catalog):
    options = {"metadata.iceberg.storage": "table-location"}
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    unobserved(table).write(pa.table({"id": [1]}))

    done = do(LakePublishOperator)
    assert do(LakePublishOperator, check=True)["report"]["readers"][0]["outcome"] == "equal"

    assert (done["skipped"], done["report"]["published"]) == (False, [1])
    assert iceberg(table).scan().to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(AirflowSkipException, match="shows snapshot 1 already"):
        do(LakePublishOperator, skip_if_noop=True)


def test_an_expiry_that_understands_no_partition_warns_with_the_remedy(orders, caplog):
    done = do(LakeExpirePartitionsOperator, expiration_time="1 d", timestamp_formatter="yyyyMMdd")

    assert done["skipped"]
    [warning] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert warning.getMessage() == (
        "shop.orders: 1 of 1 partitions never expires because its age is unknown, namely "
        "dt=2024-01-01: '2024-01-01' does not match the time format 'yyyyMMdd'. Give the format "
        "of the values, as timestamp_formatter (--formatter) or as option "
        "'partition.timestamp-formatter': 'yyyyMMdd' for 20240131, 'yyyy-MM-dd' for 2024-01-31"
    )


def test_health_fails_for_good_where_a_table_is_as_bad_as_is_said(orders):
    def add_runs(count):
        for _ in range(count):
            orders.write(pa.table({"id": [1], "dt": ["2024-01-01"], "item": ["a"]}))

    assert do(LakeHealthOperator, fail_when="degraded")["report"]["verdict"] == "healthy"
    add_runs(3)
    assert do(LakeHealthOperator, fail_when="unhealthy")["report"]["verdict"] == "degraded"
    with pytest.raises(
        AirflowFailException,
        match=r"degraded, score .* bucket 0 of .* has the most, 5; .*lake compact",
    ):
        do(LakeHealthOperator, fail_when="degraded")

    add_runs(3)
    for verdict in ("degraded", "unhealthy"):
        with pytest.raises(AirflowFailException, match=r"shop\.orders is unhealthy"):
            do(LakeHealthOperator, fail_when=verdict)


def test_a_task_with_nothing_to_do_succeeds_or_is_skipped(orders):
    do(LakeCompactOperator)

    again = do(LakeCompactOperator, task_context("another"))
    assert (again["skipped"], again["snapshot_id"]) == (True, None)

    with pytest.raises(AirflowSkipException, match=again["reason"]):
        do(LakeCompactOperator, task_context("another"), skip_if_noop=True)


@pytest.mark.parametrize(
    ("partitions", "units"), [([], 0), ({}, 2), ([{}], 2), ([{"dt": "2024-01-01"}], 1)]
)
def test_an_empty_list_is_no_partition_and_an_empty_object_every_one(orders, partitions, units):
    """A task before may have found nothing to do."""
    for item in ("apple", "pear"):
        orders.write(pa.table({"id": [1], "dt": ["2024-01-02"], "item": [item]}))

    found = do(LakeCompactOperator, partitions=partitions, dry_run=True)

    assert found["skipped"] == (not units), found
    assert found["reason"].startswith(f"{units} bucket"), found


def test_a_retry_of_a_compaction_finds_what_it_published(orders):
    context = task_context()
    first, again = do(LakeCompactOperator, context), do(LakeCompactOperator, context)

    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again["snapshot_id"] == first["snapshot_id"] == orders.latest_snapshot().id


class TestCompactDatabase:
    def test_its_tables_are_compacted_in_one_task_and_by_a_retry_not_again(self, orders, warehouse):
        items = lake.open_catalog(warehouse).create_table("shop.items", [("id", "BIGINT")])
        for number in range(2):
            items.write(pa.table({"id": [number]}))
        context = task_context()

        done = do(LakeCompactDatabaseOperator, context)
        heads = (orders.latest_snapshot().id, items.latest_snapshot().id)
        again = do(LakeCompactDatabaseOperator)

        assert (done["database"], done["reason"]) == ("shop", "2 of 2 tables compacted")
        said = {"database": "shop", "lake_conn_id": "lake_default"}
        assert context["ti"].xcoms["lake_table"] == said
        assert heads == (3, 3) == (orders.latest_snapshot().id, items.latest_snapshot().id)
        assert again["skipped"] is False
        assert (
            again["reason"] == "0 of 2 tables compacted, 2 already compacted by an earlier attempt"
        )

    @pytest.mark.parametrize("clear", ["max_tries", "clear_number"])
    def test_a_cleared_task_compacts_again(self, orders, clear):
        """A clear after ``retries`` was lowered may leave ``max_tries`` as it was."""
        context = task_context()
        do(LakeCompactDatabaseOperator, context)
        orders.write(pa.table({"id": [1], "dt": ["2024-01-01"], "item": ["fig"]}))
        changed = context["ti"] if clear == "max_tries" else context["dag_run"]
        setattr(changed, clear, getattr(changed, clear) + 1)

        again, retry = (do(LakeCompactDatabaseOperator, context) for _ in range(2))

        assert again["reason"] == "1 of 1 tables compacted"
        assert again["report"]["tables"][0]["report"]["snapshot_ids"] == [5]
        assert (
            retry["reason"] == "0 of 1 tables compacted, 1 already compacted by an earlier attempt"
        )
        assert orders.latest_snapshot().id == 5

    def test_a_table_that_fails_is_named_and_stops_no_other(self, orders, warehouse, monkeypatch):
        catalog = lake.open_catalog(warehouse)
        catalog.create_table("shop.damaged", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
        [manifest] = (Path(warehouse) / "shop.db" / "damaged" / "manifest").glob("manifest-list*-0")
        manifest.write_bytes(b"x")
        task = make(LakeCompactDatabaseOperator)
        said = []
        monkeypatch.setattr(task.log, "error", lambda *words: said.append(words))

        with pytest.raises(
            lake.LakeError, match=r"1 of 2 tables failed; the first is shop\.damaged"
        ):
            task.execute(task_context())

        assert orders.latest_snapshot().commit_kind == "COMPACT"
        assert [words[1] for words in said] == ["shop.damaged"]

    def test_a_database_nobody_has_fails_for_good(self, orders):
        with pytest.raises(AirflowFailException, match="no table matches database='sales'"):
            do(LakeCompactDatabaseOperator, database="sales")

    @pytest.mark.parametrize("engine", ["python", "spark"])
    def test_a_condition_that_is_no_sql_is_refused_before_anything_starts(
        self, orders, engine, monkeypatch
    ):
        monkeypatch.setattr(compact_database, "run", lambda request: pytest.fail("was started"))
        task = make(LakeCompactDatabaseOperator, engine=engine, where="dt =")
        monkeypatch.setattr(task, "_submit", lambda *given: pytest.fail("was submitted"))

        with pytest.raises(AirflowFailException, match="InvalidRequestError: "):
            task.execute(task_context())

    def test_a_condition_that_no_table_can_be_asked_is_not_asked_again(self, orders, catalog):
        catalog.create_table("shop.items", [("id", "BIGINT")])
        with pytest.raises(
            AirflowFailException, match=r"2 of 2 tables failed; the first is shop\.items: .*'day'"
        ):
            do(LakeCompactDatabaseOperator, where="day = '2024-01-01'")

    def test_a_warehouse_that_cannot_be_opened_is_never_submitted(self, connect, monkeypatch):
        """Its address would be an argument of a process by then, which everybody can read."""
        connect("lake_default", conn_type="lake", extra={"warehouse": "s3://key:hush@bucket/w"})
        task = make(LakeCompactDatabaseOperator, engine="spark")
        monkeypatch.setattr(task, "_submit", lambda context: pytest.fail("was submitted"))

        with pytest.raises(AirflowFailException, match="contains credentials") as refused:
            task.execute(task_context())
        assert "hush" not in str(refused.value)

    def test_nothing_to_do_may_be_skipped(self, orders):
        do(LakeCompactDatabaseOperator)
        with pytest.raises(AirflowSkipException, match="0 of 1 tables compacted"):
            do(LakeCompactDatabaseOperator, task_context("another"), skip_if_noop=True)


class TestMaintain:
    def test_a_crashed_table_is_healed_and_the_log_has_what_stands_in_the_way(
        self, catalog, caplog
    ):
        crashed_table(catalog, commits=12)
        caplog.set_level("INFO", logger="lakeformat.paimon.maintain")

        done = do(LakeMaintainOperator)
        again = do(LakeMaintainOperator, expire_consumers="2 d")

        assert (done["report"]["before"]["files"], done["report"]["after"]["files"]) == (
            12 * BUCKETS,
            BUCKETS,
        )
        said = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        [warning] = [each for each in said if each.startswith("shop.orders: consumer")]
        assert warning.endswith("lake maintain shop.orders --expire-consumers '2 d'")
        said = [each.getMessage() for each in caplog.records if each.levelname == "INFO"]
        assert any(
            f"compacted {12 * BUCKETS} files" in each and "30 orphan files" in each for each in said
        )
        assert (again["report"]["obstacles"], again["report"]["after"]["snapshots"]) == ([], 10)

    def test_a_database_is_maintained_table_by_table(self, catalog):
        crashed_table(catalog, commits=6, consumer=None)
        catalog.create_table("shop.calm", [("id", "BIGINT")])

        context = task_context()
        done = do(LakeMaintainOperator, context, table=None, database="shop")
        with pytest.raises(AirflowSkipException, match="0 of 2 tables maintained"):
            do(LakeMaintainOperator, table=None, database="shop", skip_if_noop=True)

        assert done["reason"] == "1 of 2 tables maintained"
        said = {"database": "shop", "lake_conn_id": "lake_default"}
        assert context["ti"].xcoms["lake_table"] == said

    def test_one_of_table_and_database_is_named(self):
        for subject in ({}, {"table": "shop.orders", "database": "shop"}):
            with pytest.raises(
                AirflowFailException, match="one of the arguments 'table' and 'database'"
            ):
                LakeMaintainOperator(task_id="work", **subject)

    def test_a_table_that_stays_unhealthy_may_fail_the_task_for_good(self, catalog, monkeypatch):
        def refuse(*_, **__):
            raise lake.UnsupportedError("this version does not compact it")

        crashed_table(catalog, commits=12, consumer=None)
        monkeypatch.setattr("lakeformat.paimon.maintain.steps.compact", refuse)
        assert "obstacle: compact failed" in do(LakeMaintainOperator)["reason"]
        with pytest.raises(AirflowFailException, match=r"UnhealthyTableError: shop\.orders is"):
            do(LakeMaintainOperator, fail_when="degraded")


def test_an_unknown_table_fails_for_good(warehouse):
    with pytest.raises(AirflowFailException, match=r"NotFoundError: .*shop"):
        do(LakeCompactOperator)


def test_a_snapshot_that_expires_while_it_is_read_leaves_the_task_to_be_retried():
    """A retry reads a newer one, or reports that the named one does not exist."""
    with (
        pytest.raises(lake.SnapshotExpiredError),
        failing_for_good(may_come=lambda: False),
    ):
        raise lake.SnapshotExpiredError("snapshot 3 has expired while it was read")


def test_an_unknown_connection_fails_for_good():
    with pytest.raises(AirflowFailException, match="no_such_lake"):
        do(LakeCompactOperator, lake_conn_id="no_such_lake")


def test_a_tag_that_exists_fails_for_good(orders):
    do(LakeTagOperator)

    with pytest.raises(AirflowFailException, match=r"AlreadyExistsError: .*v1"):
        do(LakeTagOperator)


def test_a_conflict_keeps_its_class_and_is_retried(orders, monkeypatch):
    def lose(request):
        raise lake.CommitConflictError("another writer was first")

    monkeypatch.setattr("spark_jobs.compact.run", lose)

    with pytest.raises(lake.CommitConflictError, match="another writer was first"):
        do(LakeCompactOperator)


def test_the_event_of_the_table_s_asset_says_which_snapshots_came(orders):
    asset = Asset(name="orders", uri="lake://shop/orders")
    other = Asset(name="x", uri="lake://shop/items")
    context = task_context()
    result = do(LakeCompactOperator, context, outlets=[asset, other])

    [(outlet, event)] = context["outlet_events"].items()
    assert outlet is asset
    assert event.extra["snapshot_id"] == result["snapshot_id"] == 3
    assert event.extra["previous_snapshot_id"] == 2


def test_the_table_is_known_to_links_before_the_work_begins(orders):
    context = task_context()

    with pytest.raises(AirflowFailException):
        do(LakeRollbackOperator, context, snapshot=99)

    said = {"table": "shop.orders", "lake_conn_id": "lake_default"}
    assert context["ti"].xcoms == {"lake_table": said}


def test_a_kill_interrupts_work_in_the_task_s_own_process(orders, monkeypatch):
    """As a signal would: the handler calls ``on_kill`` while the job is at work."""
    task = make(LakeCompactOperator)
    monkeypatch.setattr("spark_jobs.compact.run", lambda request: task.on_kill())

    with pytest.raises(LakeTaskKilled, match=r"Airflow ended task 'work'.* work, clear it"):
        task.execute(task_context())
    task.on_kill()  # the work is over: nothing to interrupt
