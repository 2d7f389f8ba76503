"""``lake package``: jobs run from what it makes, with no path of this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli import archive
from lakeformat.cli.app import app
from lakeformat.cli.archive import needed_distributions, write_environment, write_packages
from spark_jobs.runtime.command import REPORT_MARKER

ROOT = str(Path(__file__).resolve().parents[2])
SITE = sysconfig.get_path("purelib")


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "lake.zip"
    write_packages(path)
    return path


def run_from(archive_path, *words, cwd):
    """A Python that sees the archive and installed packages, but no editable installation."""
    code = (
        f"import runpy, sys; sys.path[:] = [{str(archive_path)!r}, *sys.path, {SITE!r}]; "
        f"sys.argv = {['lake.zip', *words]!r}; "
        f"runpy.run_path({str(archive_path)!r}, run_name='__main__')"
    )
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_a_job_runs_from_the_archive_alone(tmp_path, packed):
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    request = json.dumps({"warehouse": str(tmp_path / "warehouse"), "table": "shop.orders"})

    done = run_from(packed, "health", "--request", request, cwd=elsewhere)

    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith(REPORT_MARKER)]
    assert json.loads(line.removeprefix(REPORT_MARKER))["report"]["files"]["rows"] == 1
    assert list(elsewhere.iterdir()) == []


def test_every_job_is_imported_from_the_archive(tmp_path, packed):
    probe = tmp_path / "probe.zip"
    with zipfile.ZipFile(packed) as found, zipfile.ZipFile(probe, "w") as changed:
        for name in {*found.namelist()} - {"spark_jobs/runtime/registry.py"}:
            changed.writestr(name, found.read(name))
        changed.writestr(
            "spark_jobs/runtime/registry.py",
            found.read("spark_jobs/runtime/registry.py").decode()
            + "\nimport sys\nprint([m.__file__ for n, m in sys.modules.items()"
            " if n.partition('.')[0] in ('lakeformat', 'spark_jobs')])\n",
        )
    said = run_from(probe, "--help", cwd=tmp_path).stdout
    files = json.loads(said.replace("'", '"'))
    assert files
    assert all(file.startswith(str(probe)) for file in files)


def test_a_name_that_is_no_job_is_refused(tmp_path, packed):
    done = run_from(packed, "compakt", cwd=tmp_path)
    assert done.returncode == 30
    assert "compact" in done.stderr


def test_the_same_sources_make_the_same_bytes(tmp_path, packed):
    again = tmp_path / "again.zip"
    write_packages(again)
    assert again.read_bytes() == packed.read_bytes()


def test_the_archive_holds_sources_and_nothing_of_this_machine(packed):
    with zipfile.ZipFile(packed) as found:
        names = found.namelist()
        content = b"".join(found.read(name) for name in names)
    assert {"__main__.py", "lakeformat/__init__.py", "spark_jobs/log4j2.properties"} <= {*names}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert ROOT.encode() not in content


@pytest.fixture
def environment(tmp_path):
    """The environment of one small distribution."""
    path = tmp_path / "environment.tar.gz"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    write_environment(path, [distribution("packaging"), distribution("typer")], version)
    return path


def test_the_environment_brings_its_own_python(tmp_path, environment):
    with tarfile.open(environment) as found:
        found.extractall(tmp_path / "unpacked", filter="data")
    python = tmp_path / "unpacked" / "bin" / "python"
    done = subprocess.run(
        [str(python), "-S", "-c", "import packaging; print(packaging.__file__)"],
        env={"LAKE_PYTHON": sys.executable, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith(str(tmp_path / "unpacked")), done.stderr


def test_the_environment_is_the_same_each_time_and_tells_nothing(tmp_path, environment):
    again = tmp_path / "again.tar.gz"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    write_environment(again, [distribution("typer"), distribution("packaging")], version)
    assert again.read_bytes() == environment.read_bytes()
    with tarfile.open(environment) as found:
        members = found.getmembers()
        texts = [found.extractfile(each).read() for each in members if each.isfile()]
    assert {each.uname for each in members} == {""}
    assert not [text for text in texts if ROOT.encode() in text]


def test_what_is_needed_is_found_all_the_way_down():
    found = {
        each.metadata["Name"].lower() for each in needed_distributions("airflow-provider-lake")
    }
    assert {"pyarrow", "numpy", "rich", "mdurl"} <= found, "mdurl is needed by what rich needs"
    assert not found & {"airflow-provider-lake", "pyspark", "apache-airflow"}
    with_extra = needed_distributions("airflow-provider-lake", ["s3"])
    assert "obstore" in {each.metadata["Name"].lower() for each in with_extra}


def test_the_environment_holds_what_tasks_need_beside_spark(tmp_path, monkeypatch):
    packed = []
    monkeypatch.setattr(
        archive, "write_environment", lambda path, needed, _: packed.extend(needed) or path.touch()
    )
    done = CliRunner().invoke(app, ["package", str(tmp_path / "dist"), "--environment"])
    names = {each.metadata["Name"].lower() for each in packed}
    assert {"pandas", "pyarrow"} <= names, done.output
    assert not names & {"pyspark", "pyspark-client", "py4j"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--environment", "--extra", "jbdc"], "has no extra 'jbdc'; it has .*did you mean 'jdbc'"),
        (["--extra", "s3"], "--extra needs --environment"),
    ],
)
def test_a_wrong_extra_is_refused_before_a_file_is_written(tmp_path, options, words):
    done = CliRunner().invoke(app, ["package", str(tmp_path / "dist"), *options])
    assert done.exit_code != 0
    assert re.search(words, " ".join(done.output.split()) or str(done.exception))
    assert not (tmp_path / "dist").exists()


def test_what_is_missing_here_is_named(monkeypatch):
    def absent(name):
        raise archive.PackageNotFoundError

    monkeypatch.setattr(archive, "distribution", absent)
    with pytest.raises(lake.NotFoundError, match=r"needs .*, which is not installed here"):
        needed_distributions("airflow-provider-lake")


def test_the_command_leaves_all_that_is_submitted(tmp_path):
    done = CliRunner().invoke(app, ["package", str(tmp_path / "dist")])
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {
        "lake.zip",
        "lake_job.py",
        "log4j2.properties",
    }
