"""The provider info for Airflow is light, and true."""

import importlib
import importlib.util
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from airflow_provider_lake.provider_info import get_provider_info

HEAVY = ("airflow", "pyspark", "pyarrow", "polars", "pandas", "numpy", "lakeformat", "spark_jobs")


def heavy_modules_after(statement):
    code = f"{statement}; import sys; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_asking_for_it_imports_nothing():
    ask = "from airflow_provider_lake.provider_info import get_provider_info as ask; ask()"

    assert heavy_modules_after(ask) == "[]"


def test_the_package_itself_is_empty():
    assert heavy_modules_after("import airflow_provider_lake") == "[]"


@pytest.mark.parametrize("kind", ["hooks", "operators", "sensors", "triggers"])
def test_each_module_it_names_exists(kind):
    for integration in get_provider_info()[kind]:
        for module in integration["python-modules"]:
            assert importlib.util.find_spec(module) is not None


def test_each_decorator_it_names_exists():
    for decorator in get_provider_info()["task-decorators"]:
        module, _, name = decorator["class-name"].rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_each_notifier_it_names_exists():
    for path in get_provider_info()["notifications"]:
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_it_is_found_through_the_package_metadata():
    [found] = [
        point
        for point in entry_points(group="apache_airflow_provider")
        if point.module.startswith("airflow_provider_lake")
    ]

    assert found.load() is get_provider_info
