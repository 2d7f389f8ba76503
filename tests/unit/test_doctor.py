"""lake doctor reports what this machine lacks and what to do about it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat import doctor as subject
from lakeformat.cli import doctor as command
from lakeformat.doctor import Finding, Status


@pytest.fixture
def installed(monkeypatch):
    """Set the machine's packages to those of a test; the rest is absent."""

    def install(*requirements: str, **versions: str) -> None:
        named = {name.replace("_", "-").lower(): version for name, version in versions.items()}
        monkeypatch.setattr(subject, "installed_version", lambda name: named.get(name.lower()))
        monkeypatch.setattr(subject, "requires", lambda _: list(requirements))

    return install


@pytest.fixture
def java(tmp_path):
    """Put a java that only knows its version into a folder; returns that JAVA_HOME."""

    def put(said: str, code: int = 0) -> Path:
        program = tmp_path / "jdk" / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit {code}\n")
        program.chmod(0o755)
        return tmp_path / "jdk"

    return put


def status_of(findings, name):
    return {finding.name: finding.status for finding in findings}[name]


def test_this_environment_is_fit(tmp_path):
    findings = subject.diagnose(str(tmp_path))
    assert [finding for finding in findings if finding.status is Status.FAIL] == []


@pytest.mark.parametrize(("running", "status"), [((3, 10), Status.FAIL), ((3, 11), Status.OK)])
def test_an_old_python_fails(running, status):
    assert subject.check_python(running).status is status


def test_a_missing_or_old_library_fails_with_the_command_that_mends_it(installed):
    installed("numpy>=2.2", "rich>=14", airflow_provider_lake="0.1.0", numpy="1.26.4")
    findings = {finding.name: finding for finding in subject.check_packages()}
    assert findings["numpy"] == Finding(
        "numpy", Status.FAIL, "1.26.4, not >=2.2", "pip install 'numpy>=2.2'"
    )
    assert findings["rich"].found == "not installed"


def test_an_extra_that_is_absent_is_a_warning(installed):
    installed("obstore>=0.12; extra == 's3'", airflow_provider_lake="0.1.0")
    findings = {finding.name: finding for finding in subject.check_packages()}
    assert findings["[s3]"].status is Status.WARN
    assert findings["[s3]"].advice == "if you need it: pip install 'airflow-provider-lake[s3]'"


def test_an_extra_that_is_there_is_held_to_its_versions(installed):
    installed(
        "pandas<3; extra == 'spark'",
        "pyspark==4.1.3; extra == 'spark'",
        airflow_provider_lake="0.1.0",
        pandas="3.0.0",
        pyspark="4.1.3",
    )
    findings = list(subject.check_packages())
    assert status_of(findings, "pandas [spark]") is Status.FAIL
    assert status_of(findings, "pyspark [spark]") is Status.OK


def test_a_clone_that_is_not_installed_is_told_how(installed):
    installed()
    (finding,) = subject.check_packages()
    assert finding.status is Status.FAIL
    assert "pip install -e ." in finding.advice


@pytest.mark.parametrize(("extra", "first"), subject.FIRST_PACKAGE.items())
def test_the_first_package_of_an_extra_is_one_it_requires(extra, first):
    required = [Requirement(text) for text in subject.requires(subject.DISTRIBUTION) or []]
    added = {
        requirement.name.lower()
        for requirement in required
        if subject.is_wanted(requirement, extra=extra)
        and not subject.is_wanted(requirement, extra="")
    }
    assert first.lower() in added


@pytest.mark.parametrize(
    ("full", "client", "status"),
    [
        ("4.1.3", "4.1.3", Status.OK),
        ("4.1.3", None, Status.OK),
        ("4.3.0", "4.2.0", Status.FAIL),
        (None, "4.2.0", Status.WARN),
        (None, None, Status.WARN),
    ],
)
def test_two_pysparks_must_be_of_one_version(full, client, status):
    assert subject.check_spark_pair(full, client).status is status


@pytest.mark.parametrize(
    ("said", "spark", "status"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "4.1.3", Status.OK),
        ('openjdk version "21" 2023-09-19', "4.1.3", Status.OK),
        ('openjdk version "11.0.2" 2019-01-15', "4.1.3", Status.FAIL),
        ('java version "1.8.0_292"', None, Status.FAIL),
        ('openjdk version "25.0.2"', "4.1.3", Status.FAIL),
        ('openjdk version "25.0.2"', "4.2.0", Status.OK),
        ("something else", "4.1.3", Status.FAIL),
    ],
)
def test_java_must_suit_the_spark_that_is_installed(installed, java, said, spark, status):
    installed(**({"pyspark": spark} if spark else {}))
    assert subject.check_java({"JAVA_HOME": str(java(said))}).status is status


def test_a_java_home_that_does_not_run_fails_even_with_a_java_on_the_path(installed, java):
    installed(pyspark="4.1.3")
    path = str(java('openjdk version "17"') / "bin")
    finding = subject.check_java({"JAVA_HOME": "/nowhere", "PATH": path})
    assert finding.status is Status.FAIL
    assert "/nowhere/bin/java (JAVA_HOME)" in finding.found


def test_a_java_beside_this_python_needs_to_be_pointed_at(installed, java, monkeypatch):
    installed(pyspark="4.1.3")
    home = java('openjdk version "21"')
    home.rename(home.parent / "java")
    monkeypatch.setattr(sys, "prefix", str(home.parent))
    finding = subject.check_java({"PATH": ""})
    assert finding.status is Status.WARN
    assert f"export JAVA_HOME={home.parent}/java" in finding.advice


@pytest.mark.parametrize(("spark", "status"), [(None, Status.WARN), ("4.1.3", Status.FAIL)])
def test_no_java_matters_only_to_spark(installed, monkeypatch, tmp_path, spark, status):
    installed(**({"pyspark": spark} if spark else {}))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert subject.check_java({"PATH": ""}).status is status


def test_spark_submit_is_found_inside_pyspark_when_not_on_the_path():
    finding = subject.check_spark_submit({"PATH": ""})
    assert finding.status is Status.OK
    assert finding.found.endswith("pyspark/bin/spark-submit (inside pyspark)")


@pytest.mark.parametrize("client", [None, "4.1.3"])
def test_a_missing_launcher_is_installed_again_by_a_command(installed, monkeypatch, client):
    installed(**{"pyspark": "4.1.3", **({"pyspark-client": client} if client else {})})
    monkeypatch.setattr(subject.os, "access", lambda *given: False)
    finding = subject.check_spark_submit({"PATH": ""})
    packages = "pyspark==4.1.3 pyspark-client==4.1.3" if client else "pyspark==4.1.3"
    assert finding.status is Status.FAIL
    assert finding.advice == f"pip install --force-reinstall --no-deps {packages}"


def test_without_pyspark_there_is_no_spark_submit_to_miss(installed):
    installed()
    assert subject.check_spark_submit({"PATH": ""}).status is Status.WARN


@pytest.mark.parametrize("warehouse", ["", "/not/yet/there"])
def test_write_access_is_probed_without_leaving_anything(tmp_path, warehouse):
    for address in (f"{tmp_path}{warehouse}", f"file://{tmp_path}{warehouse}"):
        assert subject.check_warehouse(address).status is Status.OK
    assert list(tmp_path.iterdir()) == []


def test_a_warehouse_that_cannot_be_written_fails(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "inside", "/proc/warehouse"):
        finding = subject.check_warehouse(str(place))
        assert finding.status is Status.FAIL
        assert "--warehouse" in finding.advice


def test_a_package_that_does_not_load_is_reported(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "lakeformat.storage", None)
    finding = subject.check_warehouse(str(tmp_path))
    assert finding.status is Status.FAIL
    assert "does not load" in finding.found
    assert "pyarrow" in finding.advice


def test_a_warehouse_in_memory_is_not_probed():
    assert subject.check_warehouse("memory://lake/warehouse").status is Status.WARN


@pytest.mark.parametrize("address", ["ftp://host/warehouse", "file://host/x", "/", "~no-one/x"])
def test_an_address_the_library_refuses_fails_with_its_words(address):
    finding = subject.check_warehouse(address)
    with pytest.raises(lake.InvalidRequestError) as refusal:
        lake.open_catalog(address)
    assert finding.status is Status.FAIL
    assert finding.found == str(refusal.value).rstrip(".")


def test_a_tilde_is_the_home_directory_here_as_in_the_library(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert subject.check_warehouse("~/x").found == f"{tmp_path}/x can be created"


@pytest.fixture
def run_doctor(monkeypatch):
    """Run the command on one given finding."""

    def run(finding, *words):
        monkeypatch.setattr(command, "diagnose", lambda _: [finding])
        app = typer.Typer()
        command.register(app)
        return CliRunner().invoke(app, list(words))

    return run


def test_the_command_prints_what_failed_and_exits_1(run_doctor):
    result = run_doctor(Finding("java", Status.FAIL, "none", "install Java"))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].split() == ["fail", "java", "none", "install", "Java"]
    assert result.stdout.splitlines()[-1] == "1 to repair"


def test_a_warning_is_no_failure_and_names_in_brackets_are_shown(run_doctor):
    result = run_doctor(Finding("[spark]", Status.WARN, "none", "pip install 'x[spark]'"))
    assert result.exit_code == 0
    assert "[spark]  none   pip install 'x[spark]'" in result.stdout
    assert result.stdout.splitlines()[-1] == "ready"


def test_json_is_for_programs(run_doctor):
    finding = Finding("java", Status.OK, "17")
    assert json.loads(run_doctor(finding, "--json").stdout) == [finding.to_dict()]


def test_the_look_at_packages_loads_none_of_them():
    script = (
        "import sys, lakeformat; before = set(sys.modules)\n"
        "import lakeformat.doctor; lakeformat.doctor.diagnose()\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*new & {'airflow', 'pandas', 'pyspark', 'obstore', 'sqlalchemy', 'polars'})"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.stdout.strip() == ""
    assert answer.returncode == 0
