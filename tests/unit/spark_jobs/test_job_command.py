"""A job as a command: words in, one marked line out, exit codes, and a result where it is asked."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import compact, compact_database, health, ingest, rollback
from spark_jobs.__main__ import main as any_job
from spark_jobs.runtime import command
from spark_jobs.runtime.command import REPORT_MARKER, help_example
from spark_jobs.runtime.progress import PROGRESS_MARKER
from spark_jobs.runtime.registry import JOB_NAMES, find_job


@pytest.fixture
def stock(tmp_path, monkeypatch):
    """A keyed table of two commits in ``warehouse``, seen from the folder the examples run in."""
    monkeypatch.chdir(tmp_path)
    catalog = lake.open_catalog("warehouse")
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("dt", "STRING NOT NULL"), ("id", "BIGINT NOT NULL"), ("note", "STRING")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "1", "changelog-producer": "lookup"},
    )
    for number in (1, 2):
        table.write(pa.table({"dt": ["2024-01-01"], "id": [number]}))
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "a.csv").write_text("dt,id\n2024-01-02,3\n")
    return table


def request(**more):
    return json.dumps({"warehouse": "warehouse", "table": "shop.orders", **more})


def result_in(output):
    [line] = [line for line in output.splitlines() if line.startswith(REPORT_MARKER)]
    return json.loads(line.removeprefix(REPORT_MARKER))


def test_the_exit_code_says_whether_something_was_done(stock, capsys):
    assert compact.main(["--request", request()]) == 0
    assert compact.main(["--request", request()]) == 10
    said = capsys.readouterr()
    assert said.out.count(REPORT_MARKER) == 2
    assert said.err == ""


def test_a_lost_race_exits_with_20(stock, capsys, monkeypatch):
    def lose(*args, **kwargs):
        raise lake.CommitConflictError("another writer was first")

    monkeypatch.setattr(lake.Table, "compact", lose)
    assert compact.main(["--request", request()]) == 20
    assert "CommitConflictError: another writer was first" in capsys.readouterr().err


def test_a_compaction_that_failed_at_a_bucket_tells_what_it_did_to_others(stock, capsys):
    for _ in range(2):
        stock.write(pa.table({"dt": ["2024-01-02"], "id": [1]}))
    next(Path("warehouse/shop.db/orders/dt=2024-01-01/bucket-0").iterdir()).unlink()
    assert compact.main(["--request", request()]) == 1
    said = capsys.readouterr()
    result = result_in(said.out)
    assert (result["error"], result["exit_code"]) == ("CorruptTableError", 1)
    assert (result["table"], result["snapshot_id"]) == ("shop.orders", 5)
    outcomes = {each["partition"]: each["outcome"] for each in result["report"]["buckets"]}
    assert outcomes == {"dt=2024-01-01": "failed", "dt=2024-01-02": "compacted"}


def test_a_race_lost_at_every_table_exits_with_20_too(stock, capsys, monkeypatch):
    def lose(*args, **kwargs):
        raise lake.CommitConflictError("another writer was first")

    monkeypatch.setattr(lake.Table, "compact", lose)
    words = json.dumps({"warehouse": "warehouse", "database": "shop"})
    assert compact_database.main(["--request", words]) == 20


def test_a_compaction_that_only_met_others_is_no_compaction_of_nothing(stock, capsys, monkeypatch):
    given_up = replace(stock.compact(), snapshot_ids=(), unfinished="other commits were first")
    monkeypatch.setattr(lake.Table, "compact", lambda *args, **kwargs: given_up)
    assert compact.main(["--request", request()]) == 20


def test_importing_the_jobs_loads_no_data_stack():
    imports = "; ".join(f"import spark_jobs.{name}" for name in ("__main__", *JOB_NAMES))
    heavy = ("pyspark", "pyarrow", "numpy", "pandas", "polars", "sqlalchemy")
    code = f"import sys; {imports}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("engine", "own", "is_hidden"),
    [("python", True, True), ("spark", True, False), ("python", False, False)],
)
def test_only_a_job_s_own_process_without_spark_hides_pandas(
    engine, own, is_hidden, capsys, monkeypatch
):
    hidden = []
    monkeypatch.setattr(command, "hide_pandas", lambda: hidden.append(True))
    words = ["--request", request(engine=engine)]
    monkeypatch.setattr(sys, "argv", ["compact", *words])

    code = command.run_command(compact.JOB, lambda _: {"skipped": True}, None if own else words)

    assert (code, bool(hidden)) == (10, is_hidden)


@pytest.mark.parametrize(
    "words", [[], ["--request", "{}", "--nonsense"], ["--request", "{"], ["--request", "[]"]]
)
def test_words_that_make_no_request_exit_with_30(words, capsys):
    try:
        code = compact.main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 30
    assert capsys.readouterr().out == ""


def test_progress_is_told_in_lines_of_their_own(stock, capsys):
    compact.main(["--request", request()])
    lines = [
        json.loads(line.removeprefix(PROGRESS_MARKER))
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(PROGRESS_MARKER)
    ]
    assert lines[-1]["done"] == lines[-1]["total"] == 1
    assert lines[-1]["unit"] == "units"


def test_files_are_counted_as_they_are_read(stock, capsys):
    assert ingest.main(["--request", request(source="incoming/*.csv")]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if PROGRESS_MARKER in line)
    assert json.loads(line.removeprefix(PROGRESS_MARKER)) == {
        "done": 1,
        "total": 1,
        "unit": "files",
    }


def test_the_result_lies_where_it_was_asked_for(stock, tmp_path, capsys):
    place = tmp_path / "results" / "result.json"
    place.parent.mkdir()
    (tmp_path / "request.json").write_text(request())
    words = ["--request", f"{tmp_path.as_uri()}/request.json", "--result-uri", place.as_uri()]
    assert health.main(words) == 0
    assert json.loads(place.read_text()) == result_in(capsys.readouterr().out)


def test_a_failure_is_left_there_too(stock, tmp_path, capsys):
    place = tmp_path / "result.json"
    assert rollback.main(["--request", request(snapshot=9), "--result-uri", str(place)]) == 1
    left = json.loads(place.read_text())
    assert (left["job"], left["error"], left["exit_code"]) == ("rollback", "NotFoundError", 1)
    assert "snapshot" in left["message"]


def test_a_result_that_cannot_be_left_is_an_error(stock, tmp_path, capsys):
    (tmp_path / "a-file").write_text("")
    assert health.main(["--request", request(), "--result-uri", "a-file/result.json"]) == 1
    assert result_in(capsys.readouterr().out)["job"] == "health"


def test_so_is_one_of_a_job_that_had_nothing_to_do_and_a_wrong_request_stays_one(stock, tmp_path):
    (tmp_path / "a-file").write_text("")
    lost = ["--result-uri", "a-file/result.json"]
    compact.main(["--request", request()])

    assert compact.main(["--request", request(), *lost]) == 1
    assert compact.main(["--request", request(strategy="none"), *lost]) == 30


def test_what_was_done_is_told_although_a_part_failed(stock, tmp_path, capsys):
    for file in (tmp_path / "warehouse/shop.db/orders/dt=2024-01-01/bucket-0").iterdir():
        file.unlink()
    words = json.dumps({"warehouse": "warehouse", "database": "shop"})
    assert compact_database.main(["--request", words]) == 1
    assert result_in(capsys.readouterr().out)["error"] == "PartlyFailedError"


def test_secrets_come_from_the_environment(stock, capsys, monkeypatch):
    monkeypatch.setenv("LAKE_OPTIONS", json.dumps({"s3.secret-key": "hush"}))
    code = health.main(["--request", request(), "--catalog-options-env", "LAKE_OPTIONS"])
    said = capsys.readouterr()
    assert code == 30, "an option that does not apply to the warehouse shows that it was read"
    assert "s3.secret-key" in said.err
    assert "hush" not in said.err


@pytest.mark.parametrize("error", [lake.UnavailableError, OSError])
def test_the_text_of_an_error_hides_credentials_of_the_environment(
    tmp_path, capsys, monkeypatch, error
):
    """A store or a driver may quote them."""
    options = {
        "s3.secret-key": "hush-hush",
        "uri": "postgresql://me:hush-too@db/lake",
        "s3.region": "eu",
    }
    monkeypatch.setenv("LAKE_OPTIONS", json.dumps(options))
    monkeypatch.setenv("SOURCE", json.dumps({"user": "me", "password": "hush-me"}))

    def fail(_):
        raise error(f"eu refuses hush-hush, hush-me, hush-too and {options['uri']}")

    place = tmp_path / "result.json"
    asked = request(jdbc_url="postgresql://db", jdbc_table="orders")
    words = ["--request", asked, "--catalog-options-env", "LAKE_OPTIONS"]
    words += ["--source-options-env", "SOURCE", "--result-uri", str(place)]
    assert command.run_command(find_job("ingest"), fail, words) == 1

    said, left = capsys.readouterr().err, json.loads(place.read_text())["message"]
    assert left == "eu refuses ***, ***, *** and postgresql://…@db/lake"
    assert left in said
    assert "hush" not in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"catalog_options": {"s3.secret-key": "hush"}}]', "must be a JSON object, got a list"),
        ('{"table": ', "the file that it names, is not JSON: Expecting value"),
    ],
)
def test_a_file_that_holds_no_request_is_refused_without_its_values(
    stock, tmp_path, capsys, content, words
):
    place = tmp_path / "request.json"
    place.write_text(content)
    assert health.main(["--request", str(place)]) == 30
    said = capsys.readouterr().err
    assert words in said
    assert "hush" not in said


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "is not set"),
        ("hush", "must be a JSON object"),
        ('{"a": 1}', "must be a JSON object of strings"),
    ],
)
def test_options_in_the_environment_are_an_object_of_texts(
    stock, capsys, monkeypatch, value, words
):
    if value is not None:
        monkeypatch.setenv("LAKE_OPTIONS", value)
    assert health.main(["--request", request(), "--catalog-options-env", "LAKE_OPTIONS"]) == 30
    said = capsys.readouterr().err
    assert words in said
    assert "hush" not in said


@pytest.mark.parametrize("name", JOB_NAMES)
def test_help_has_an_example_that_works(stock, name, capsys):
    job = find_job(name)
    with pytest.raises(SystemExit) as ended:
        job_module(name).main(["--help"])
    assert ended.value.code == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "python -m" in line]
    words = shlex.split(line)
    assert words == help_example(job)
    if name == "commit":
        words[-1] = words[-1].replace("staged-0a1b", staged_file(stock))
    if name == "rescale":
        stock.compact()  # else rows would be lost to its changelog, and it is refused
    if name == "publish":
        option = lake.set_option("metadata.iceberg.storage", "table-location")
        lake.open_catalog("warehouse").alter_table("shop.orders", option)
    assert job_module(name).main(words[3:]) in (0, 10), capsys.readouterr().err


def test_the_commands_of_the_guide_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    catalog = lake.open_catalog("warehouse")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    catalog.create_table("shop.stock", [("id", "BIGINT")], primary_key=["id"])
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "a.csv").write_text("id\n1\n")
    guide = (Path(__file__).resolve().parents[3] / "docs" / "library.md").read_text()
    commands = [
        shlex.split(line) for line in guide.splitlines() if line.startswith("python -m spark_jobs ")
    ]
    assert [any_job(words[3:]) for words in commands] == [0, 10], capsys.readouterr().err


def job_module(name):
    from importlib import import_module

    return import_module(f"spark_jobs.{name}")


def staged_file(table):
    with table.new_writer() as writer:
        writer.write(pa.table({"dt": ["2024-01-03"], "id": [9]}))
        staged = table.staged.add(writer.prepare())
    return table.staged.address(staged.name).rpartition("/")[2]
