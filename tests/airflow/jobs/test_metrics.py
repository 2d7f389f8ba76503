"""Metrics of tasks: numbers of their work, sent once, and never an error."""

import inspect
import re
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from airflow.sdk import task

import lakeformat as lake
from airflow_provider_lake.jobs.metrics import count_outcome, counting_failures
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.compact_database import LakeCompactDatabaseOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.remove_orphans import LakeRemoveOrphansOperator
from airflow_provider_lake.operators.rescale import LakeRescaleOperator
from tests.airflow.contexts import task_context
from tests.airflow.kept_metrics import backend
from tests.airflow.versions import AirflowFailException
from tests.unit.publish.published import unobserved

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
SUBJECT = {"job": "compact", "table": "shop.orders"}


@pytest.fixture
def orders(catalog):
    """Three files of two rows each, in three snapshots."""
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT NOT NULL")], primary_key=["id"], options={"bucket": "1"}
    )
    for number in range(3):
        table.write(pa.table({"id": [number, number + 1]}))
    return table


def do(operator, context=None, **arguments):
    return operator(task_id="work", **arguments).execute(context or task_context())


def test_a_compaction_tells_what_it_read_and_wrote(told, orders):
    result = do(LakeCompactOperator, table="shop.orders")

    report = result["report"]
    names = ("rows_in", "rows_out", "files_in", "files_out", "bytes_in", "bytes_out")
    assert told.numbers() == {name: report[name] for name in names}
    assert (report["rows_in"], report["rows_out"], report["files_in"]) == (6, 4, 3)
    assert all(tags == SUBJECT for _, _, _, tags in told if tags)
    [(kind, _, millis, _)] = [each for each in told if each[1] == "lake.duration"]
    assert (kind, millis) == ("timing", result["seconds"] * 1000)


def test_each_number_has_a_name_for_backends_without_tags(told, orders, monkeypatch):
    do(LakeCompactOperator, table="shop.orders")
    tagged = {(kind, name.removeprefix("lake."), value) for kind, name, value, tags in told if tags}
    plain = {
        (kind, name.removeprefix("lake.compact.shop.orders."), value)
        for kind, name, value, tags in told
        if tags is None
    }
    assert plain == tagged
    told.clear()

    monkeypatch.setenv("AIRFLOW__METRICS__LEGACY_NAMES_ON", "False")
    do(LakeCompactOperator, table="shop.orders")
    assert told
    assert all(tags for _, _, _, tags in told)


def test_nothing_to_do_is_told_and_a_plan_adds_nothing(told, orders):
    do(LakeCompactOperator, table="shop.orders", dry_run=True)
    do(LakeRescaleOperator, table="shop.orders", bucket=2, dry_run=True)
    do(LakeExpireSnapshotsOperator, table="shop.orders", retain_max=1, retain_min=1, dry_run=True)
    assert told.numbers() == {}

    do(LakeCompactOperator, table="shop.orders")
    told.clear()
    do(LakeCompactOperator, context=task_context("again"), table="shop.orders")
    assert told.numbers() == {"skipped": 1}


def test_rows_count_when_they_are_published_and_once(told, orders, tmp_path):
    (tmp_path / "a.csv").write_text("id\n7\n8\n9\n")
    land = {"table": "shop.orders", "source": str(tmp_path / "a.csv")}

    staged = do(LakeIngestOperator, context=task_context("stage"), **land, stage=True)
    assert told.numbers() == {}
    do(LakeCommitOperator, table="shop.orders", staged=[staged["staged"]])
    size = staged["report"]["bytes"]
    assert told.numbers() == {"rows_out": 3, "files_out": 1, "bytes_out": size}

    told.clear()
    context = task_context("land")
    do(LakeIngestOperator, context=context, **land)
    assert told.numbers()["rows_out"] == 3
    told.clear()
    context["ti"].try_number = 2
    do(LakeIngestOperator, context=context, **land)
    assert told.numbers() == {"replayed": 1}


def test_a_stream_of_several_batches_tells_no_rows(told, orders, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("id\n7\n")

    result = do(
        LakeIngestOperator,
        table="shop.orders",
        source=str(tmp_path / "*.csv"),
        checkpoint=str(tmp_path / "checkpoint"),
        files_per_batch=1,
    )

    assert result["report"]["batches"] == 2
    assert {*told.numbers()} <= {"commit_retries"}


def test_what_expires_is_told_by_files_and_bytes(told, orders):
    do(LakeCompactOperator, table="shop.orders")
    told.clear()

    result = do(LakeExpireSnapshotsOperator, table="shop.orders", retain_max=1, retain_min=1)

    report = result["report"]
    assert report["files"]["data"] == 3
    assert told.numbers() == {
        "files_removed": sum(report["files"].values()),
        "bytes_removed": report["bytes"],
    }


def test_orphans_count_only_if_they_go(told, orders):
    asked = {"table": "shop.orders", "older_than": "2 d"}
    do(LakeRemoveOrphansOperator, **asked)
    assert told.numbers() == {"skipped": 1}
    report = {"removed_files": 2, "removed_bytes": 9, "dry_run": False}
    told.clear()

    count_outcome({"job": "remove_orphans", "table": "shop.orders", "report": report})
    assert told.numbers() == {"files_removed": 2, "bytes_removed": 9}
    told.clear()
    count_outcome({"job": "remove_orphans", "table": "t", "report": report | {"dry_run": True}})
    assert told.numbers() == {}


def test_a_maintenance_adds_up_its_steps(told, orders):
    report = {
        "dry_run": False,
        "removed_files": 2,
        "removed_bytes": 9,
        "files_in": 5,
        "files_out": 1,
    }
    numbers = {"files_removed": 2, "bytes_removed": 9, "files_in": 5, "files_out": 1}
    result = {"job": "maintain", "table": "shop.orders", "report": report}
    count_outcome(result)
    assert told.numbers() == numbers
    told.clear()
    count_outcome({**result, "report": report | {"dry_run": True}})
    assert told.numbers() == {}
    tables = [{"table": "shop.orders", "report": report}, {"table": "shop.b", "report": None}]
    count_outcome({"job": "maintain", "database": "shop", "report": {"tables": tables}})
    assert told.numbers() == numbers


def test_a_rescale_adds_up_its_partitions(told, orders):
    report = do(LakeRescaleOperator, table="shop.orders", bucket=2)["report"]

    [part] = report["partitions"]
    names = ("rows_in", "rows_out", "bytes_in", "bytes_out")
    assert told.numbers() == {name: part[name] for name in names}


def test_a_database_tells_of_each_table(told, orders):
    do(LakeCompactDatabaseOperator, database="shop")

    tags = [tags for _, name, _, tags in told if name == "lake.rows_in"]
    assert tags == [{"job": "compact_database", "table": "shop.orders"}]
    [duration] = [tags for _, name, _, tags in told if name == "lake.duration"]
    assert duration == {"job": "compact_database", "database": "shop"}
    assert "lake.compact_database.shop.orders.rows_in" in [name for _, name, _, _ in told]


def test_health_is_a_gauge(told, orders):
    result = do(LakeHealthOperator, table="shop.orders")

    assert told.numbers() == {"health_score": result["report"]["score"]}
    assert ("gauge", "lake.health.shop.orders.health_score") in [each[:2] for each in told]


def test_the_lag_of_a_publication_is_a_gauge(told, catalog):
    options = {"metadata.iceberg.storage": "table-location"}
    table = catalog.create_table("shop.shown", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": [1]}))
    theirs = unobserved(table)
    for number in (2, 3):
        theirs.write(pa.table({"id": [number]}))

    do(LakeHealthOperator, table="shop.shown")

    assert told.numbers()["unpublished_snapshots"] == 2


def test_functions_tell_the_same(told, orders):
    commit = task.lake_commit(table="shop.orders", task_id="work")(lambda: [{"id": 9}])
    look = task.lake_job(table="shop.orders", task_id="work")(lambda table: 1)

    commit().operator.execute(task_context())
    numbers = told.numbers()
    assert (numbers["rows_out"], numbers["files_out"]) == (1, 1)
    told.clear()
    look().operator.execute(task_context())
    assert [(kind, name) for kind, name, _, _ in told] == [
        ("timing", "lake.duration"),
        ("timing", "lake.lake_job.shop.orders.duration"),
    ]


def test_failures_are_told_by_their_class_and_conflicts_besides(told, warehouse):
    with pytest.raises(AirflowFailException):
        do(LakeCompactOperator, table="shop.nothing")
    assert told.numbers() == {"failures": 1}
    assert told[0][3] == {"job": "compact", "table": "shop.nothing", "error": "NotFoundError"}
    told.clear()

    with pytest.raises(lake.CommitConflictError), counting_failures("compact", lambda: SUBJECT):
        raise lake.CommitConflictError("others were first")
    assert told.numbers() == {"failures": 1, "conflicts": 1}


def test_lost_races_are_told(told):
    report = {"rows": 1, "files": 1, "bytes": 9, "attempts": 3}
    result = {"job": "ingest", "table": "shop.orders", "snapshot_id": 4, "report": report}
    count_outcome(result)
    assert told.numbers()["commit_retries"] == 2
    told.clear()
    refused = {"job": "compact", "report": {"groups_refused": 2}}
    count_outcome(result | refused)
    assert told.numbers() == {"conflicts": 2}


def test_a_backend_that_breaks_is_no_reason_to_fail(orders, told, caplog):
    def broken(*given, **named):
        raise OSError("no route to the statistics")

    told.incr = told.timing = told.gauge = broken

    assert do(LakeCompactOperator, table="shop.orders")["snapshot_id"] is not None
    assert "no route to the statistics" in caplog.text
    with pytest.raises(AirflowFailException, match="NotFoundError"):
        do(LakeCompactOperator, table="shop.nothing")


class UdpClient:
    """The text of StatsD, as its clients send it."""

    def __init__(self, port):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._to = ("127.0.0.1", port)

    def _send(self, text):
        self._socket.sendto(text.encode(), self._to)

    def incr(self, stat, count, rate):
        self._send(f"{stat}:{count}|c")

    def gauge(self, stat, value, rate, delta):
        self._send(f"{stat}:{value}|g")

    def timing(self, stat, delta):
        self._send(f"{stat}:{delta:.6f}|ms")

    def close(self):
        self._socket.close()


@pytest.mark.parametrize("tags", [False, True], ids=["statsd", "with tags of influxdb"])
def test_statsd_gets_it_as_text(told, orders, tags, monkeypatch):
    # Airflow 3.4 imports the client's package for this backend, and the client here replaces it.
    clients = SimpleNamespace(StatsClient=UdpClient, UnixSocketStatsClient=UdpClient)
    monkeypatch.setitem(sys.modules, "statsd", clients)
    from tests.airflow.versions import SafeStatsdLogger

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        client = UdpClient(listener.getsockname()[1])
        names = ("influxdb_tags_enabled", "statsd_influxdb_enabled")
        known = inspect.signature(SafeStatsdLogger).parameters
        backend(SafeStatsdLogger(client, **{name: tags for name in names if name in known}))

        do(LakeCompactOperator, table="shop.orders")

        client.close()
        lines = [listener.recv(2000).decode() for _ in range(14)]
    tagged = ",job=compact,table=shop.orders" if tags else ""
    assert f"lake.rows_in{tagged}:6|c" in lines
    assert "lake.compact.shop.orders.rows_in:6|c" in lines
    assert any(re.fullmatch(rf"lake\.duration{tagged}:\d+\.\d+\|ms", line) for line in lines)


def test_opentelemetry_gets_it_with_attributes(told, orders):
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from tests.airflow.versions import SafeOtelLogger

    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    backend(SafeOtelLogger(provider))

    do(LakeCompactOperator, table="shop.orders")

    [resource] = reader.get_metrics_data().resource_metrics
    found = {each.name: each for scope in resource.scope_metrics for each in scope.metrics}
    [point] = found["airflow.lake.rows_in"].data.data_points
    assert (point.value, dict(point.attributes)) == (6, SUBJECT)
    assert "airflow.lake.duration" in found
    provider.shutdown()


def test_the_page_names_every_metric():
    text = PAGE.read_text()
    named = {*re.findall(r"^\| `lake\.(\w+)`", text, re.M)}
    code = Path(count_outcome.__code__.co_filename).read_text()
    tables = {*re.findall(r"\"(\w+_(?:in|out|changed|removed|retries)|conflicts)\"", code)}

    gauges = {"health_score", "unpublished_snapshots"}
    assert named == tables | gauges | {"duration", "skipped", "replayed", "failures"}
