"""The provider imports only public modules of Airflow, and knows its versions in one module."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = [
    *sorted((ROOT / "airflow_provider_lake").rglob("*.py")),
    *sorted((ROOT / "dags").rglob("*.py")),
]
# Airflow's documentation offers none of these to providers.
INTERNAL = re.compile(r"^airflow\.(.*\.)?_|^airflow\.models\.xcom\b|\.create_session$")
# The pages read XComs in the API server; a public way exists only over HTTP.
OF_RECORDS = {"airflow.models.xcom.XComModel"}
# Only the module of Airflow's records reads the metadata database.
DATABASE = re.compile(r"^airflow\.(utils\.session|settings)\b")
# Airflow 3.1 has these under other names.
MOVED = re.compile(
    r"^airflow\.sdk\.(exceptions\.Airflow(?!Runtime)|configuration\.|observability\."
    r"|plugins_manager\.|CronDataIntervalTimetable$)"
)
VERSION = re.compile(r"airflow\S* import .*__version__|AIRFLOW_V_|version\(.apache-airflow")


def imported(path):
    """Return the dotted names that a file imports from Airflow."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found += [f"{node.module}.{each.name}" for each in node.names]
    return [name for name in found if name.startswith("airflow.")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_nothing_internal(path):
    found = {name for name in imported(path) if INTERNAL.search(name)}

    assert found <= (OF_RECORDS if path.name == "airflow_records.py" else set())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_one_module_reads_the_metadata_database(path):
    found = [name for name in imported(path) if DATABASE.search(name)]

    assert found == [] or path.name == "airflow_records.py"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_name_that_airflow_has_moved_comes_from_the_module_of_versions(path):
    moved = [name for name in imported(path) if MOVED.search(name)]

    assert moved == [] or path.name == "compat.py"


def test_only_one_module_distinguishes_versions_of_airflow():
    assert {path.name for path in FILES if VERSION.search(path.read_text())} <= {"compat.py"}


@pytest.mark.parametrize(
    "line",
    [
        "from airflow.sdk.definitions._internal.mixins import ResolveMixin",
        "import airflow.sdk._shared.secrets_backend.base",
        "from airflow.models.xcom import XComModel",
        "from airflow.utils.session import create_session",
    ],
)
def test_an_internal_import_is_found(line, tmp_path):
    (tmp_path / "module.py").write_text(line)

    assert INTERNAL.search(imported(tmp_path / "module.py")[0])
