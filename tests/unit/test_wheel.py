"""The wheel, installed in a fresh environment, brings everything a user needs.

Its dependencies are linked from the environment of the tests, so no network is needed.
"""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lakeformat", "spark_jobs", "airflow_provider_lake")
DATA = (
    *(f"{package}/py.typed" for package in PACKAGES),
    "spark_jobs/__main__.py",
    "spark_jobs/log4j2.properties",
    "airflow_provider_lake/page/templates/base.html",
    "airflow_provider_lake/page/templates/style.css",
)
IMPORT_ALL = f"""
import importlib, pkgutil, sys
for package in {PACKAGES}:
    found = pkgutil.walk_packages(importlib.import_module(package).__path__, package + ".")
    for name in sorted(module.name for module in found):
        if not name.endswith("__main__"):
            importlib.import_module(name)
for name, module in sys.modules.items():
    if name.partition(".")[0] in {PACKAGES}:
        print(module.__file__)
"""
APPEND = """
import lakeformat as lake
import pyarrow as pa
catalog = lake.open_catalog("warehouse")
catalog.create_database("shop")
table = catalog.create_table("shop.orders", [("id", "BIGINT")])
print(table.write(pa.table({"id": [1]})).reason, table.scan().count())
"""
PROVIDERS = """
from airflow.providers_manager import ProvidersManager
manager = ProvidersManager()
print(manager.providers["airflow-provider-lake"].version)
print(manager.hooks["lake"].hook_class_name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheel):
    """A folder whose ``venv`` holds the wheel, and links to its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv")
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "airflow_provider_lake" not in entry.name and not entry.name.endswith(".pth"):
            (dependencies / entry.name).symlink_to(entry)
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    pip = (sys.executable, "-m", "pip", "--python", "venv/bin/python")
    run(folder, *pip, "install", "--no-index", "--no-deps", wheel)
    (packages / "dependencies.pth").write_text(str(dependencies))
    return folder


def run(folder, *command):
    """Run a command that sees nothing of this repository, and return what it prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean["AIRFLOW_HOME"] = str(folder / "airflow")
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_holds_the_packages_with_their_data_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as found:
        names = found.namelist()
    information = f"airflow_provider_lake-{version('airflow-provider-lake')}.dist-info"
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, information}
    assert {*DATA, f"{information}/licenses/LICENSE", f"{information}/licenses/NOTICE"} <= {*names}


def test_every_job_a_cluster_runs_is_inside(wheel):
    with zipfile.ZipFile(wheel) as found:
        inside = {name for name in found.namelist() if name.count("/") == 1}
    assert {f"spark_jobs/{path.name}" for path in (ROOT / "spark_jobs").glob("*.py")} <= inside


def test_every_module_is_imported_from_it(installed):
    files = run(installed, "venv/bin/python", "-W", "ignore", "-c", IMPORT_ALL).splitlines()
    assert len(files) > 400
    assert [line for line in files if not line.startswith(str(installed / "venv"))] == []


def test_the_command_prints_its_help_and_version(installed):
    assert "compact-database" in run(installed, "venv/bin/lake", "--help")
    assert version("airflow-provider-lake") in run(installed, "venv/bin/lake", "--version")


def test_rows_are_appended_and_counted(installed):
    printed = run(installed, "venv/bin/python", "-c", APPEND)
    assert printed == "published as snapshot 1 1\n"


def test_airflow_finds_the_provider(installed):
    printed = run(installed, "venv/bin/python", "-W", "ignore", "-c", PROVIDERS).splitlines()
    assert printed[-2:] == [
        version("airflow-provider-lake"),
        "airflow_provider_lake.hooks.lake.LakeHook",
    ]
