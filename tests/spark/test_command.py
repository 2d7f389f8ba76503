"""A job as a process: one marked line of JSON, exit codes, and nothing loaded too early."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs import ingest
from spark_jobs.runtime.command import REPORT_MARKER
from tests.spark.orders import write_orders


def report_in(output):
    [line] = [line for line in output.splitlines() if line.startswith(REPORT_MARKER)]
    return json.loads(line.removeprefix(REPORT_MARKER))


def test_a_request_may_be_json_or_a_file(tmp_path, request_for, capsys):
    write_orders(tmp_path, "csv")
    request = request_for("orders-*", commit_user="run", commit_identifier=1)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))

    assert ingest.main(["--request", json.dumps(request)]) == 0
    first = report_in(capsys.readouterr().out)
    assert ingest.main(["--request", str(path)]) == 0
    second = report_in(capsys.readouterr().out)

    assert (first["report"]["rows"], first["replayed"]) == (4, False)
    assert (second["snapshot_id"], second["replayed"]) == (first["snapshot_id"], True)


@pytest.mark.parametrize("given", ["{", "[]", '{"warehouse": 1}', "no/such/file.json", '"x"'])
def test_a_wrong_request_exits_with_30_and_one_line(given, capsys):
    assert ingest.main(["--request", given]) == 30

    said = capsys.readouterr()
    assert said.out == ""
    [line] = said.err.splitlines()
    assert line.startswith("ingest: InvalidRequestError: ")


def test_any_other_error_exits_with_1_and_one_line(tmp_path, request_for, capsys):
    assert ingest.main(["--request", json.dumps(request_for("nothing-*"))]) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("ingest: NotFoundError: source ")


def test_importing_a_job_loads_no_data_stack():
    names = ("ingest", "job_requests.request", "runtime.command", "runtime.spark_session")
    code = (
        f"import sys, {', '.join(f'spark_jobs.{name}' for name in names)}; "
        "print([n for n in ('pyspark', 'pyarrow', 'polars', 'pandas') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.sampled(1, among="Sparks of their own")
def test_spark_submit_runs_the_job_by_its_path(tmp_path, request_for, spark):
    write_orders(tmp_path, "parquet")
    request = json.dumps(request_for("orders-*", engine="spark"))
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    words = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", ingest.__file__]
    done = subprocess.run(
        [str(submit), *words, "--request", request],
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert report_in(done.stdout)["report"]["rows"] == 4


@pytest.mark.sampled(1, among="Sparks of their own")
def test_a_session_says_nothing_but_errors(tmp_path, spark):
    code = (
        "from spark_jobs.runtime.spark_session import start_session; "
        "session = start_session('quiet', master='local[1]'); "
        "session.range(3).toPandas(); session.stop()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )

    assert done.returncode == 0, done.stderr
    ours = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    assert (done.stdout, ours) == ("", [])
