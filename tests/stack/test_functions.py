"""A whole Airflow runs the functions of docs/decorators.md, copied as a newcomer copies them."""

import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from local_airflow import LocalAirflow

import lakeformat as lake

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decorators.md"
PATIENCE = 240


class Collector(ThreadingHTTPServer):
    """Receives metrics of OpenTelemetry on loopback, and keeps them."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Taker)
        self.sums = {}

    def take(self, name, point):
        """A counter's value replaces the one before: it is the sum since its process began."""
        tags = {each.key: each.value.string_value for each in point.attributes}
        counter = (name, point.start_time_unix_nano, *sorted(tags.items()))
        self.sums[counter] = (point.as_int or int(point.as_double), tags)

    def of(self, name):
        """Return the counts of each process."""
        return [said for counter, said in [*self.sums.items()] if counter[0] == name]


class Taker(BaseHTTPRequestHandler):
    """One request of an exporter."""

    def do_POST(self):
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.sum.data_points:
                        self.server.take(metric.name, point)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *given):
        """Print nothing."""


@pytest.fixture
def collector():
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        yield collector
        collector.shutdown()


@pytest.fixture
def airflow(tmp_path, collector):
    """The first example of the page, on a table of one's own."""
    example = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "prices.py").write_text(example.replace("shop.prices", "store.costs"))
    connection = {"conn_type": "lake", "extra": {"warehouse": str(tmp_path / "warehouse")}}
    port = collector.server_address[1]
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "AIRFLOW__METRICS__LEGACY_NAMES_ON": "False",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{port}/v1/metrics",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
    }
    with LocalAirflow(tmp_path / "airflow", dags, settings=settings) as airflow:
        airflow.wait_for_dags("prices", seconds=PATIENCE)
        yield airflow


def test_a_cleared_function_replaces_its_rows_and_its_worker_tells_metrics(
    airflow, collector, tmp_path
):
    airflow.wait_for_runs("prices", 1, seconds=PATIENCE)
    [run] = airflow.runs("prices")
    first = airflow.result("prices", run, "fetch_prices")
    wanted = {
        "dry_run": False,
        "dag_run_id": run,
        "task_ids": ["fetch_prices"],
        "only_failed": False,
        "reset_dag_runs": True,
    }
    airflow.ask("POST", "dags/prices/clearTaskInstances", wanted)

    def result():
        return airflow.result("prices", run, "fetch_prices") or {}

    airflow.wait_for("the cleared task", lambda: result().get("snapshot_id") == 2, PATIENCE)
    costs = lake.open_catalog(str(tmp_path / "warehouse")).table("store.costs")
    assert [str(snapshot.commit_kind) for snapshot in costs.snapshots()] == ["APPEND", "APPEND"]
    assert costs.scan().count() == first["report"]["rows"] == 2
    assert (first["snapshot_id"], result()["replayed"]) == (1, False)
    tags = {"job": "lake_commit", "table": "store.costs"}
    airflow.wait_for("its number", lambda: len(collector.of("airflow.lake.rows_out")) > 1, PATIENCE)
    assert collector.of("airflow.lake.rows_out")[:2] == [(2, tags), (2, tags)]
