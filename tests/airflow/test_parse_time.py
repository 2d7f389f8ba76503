"""Parsing the templates is cheap: loaded modules are counted, not timed."""

import json
import subprocess
import sys

from tests.airflow.conftest import DAGS

# What a DAG file has loaded from us, and what of the heavy things.
BUDGET = 60
HEAVY = (
    "pyspark",
    "pyarrow",
    "polars",
    "pandas",
    "numpy",
    "fastavro",
    "lakeformat.paimon.table",
    "airflow.providers.apache.spark",
    "airflow.providers.openlineage",
)

CODE = f"""
import json, runpy, sys
import airflow.sdk, airflow.models
import airflow.providers.standard.operators.hitl
from airflow.providers_manager import ProvidersManager
ProvidersManager().initialize_providers_list()  # as the first asset does in Airflow 3.1
before = set(sys.modules)
for path in sys.argv[1:]:
    runpy.run_path(path)
added = sorted(set(sys.modules) - before)
heavy = sorted({{*added}} & {{*{HEAVY!r}}})
print(json.dumps([added, heavy]))
"""


def test_parsing_all_templates_loads_few_modules_and_no_data_stack():
    paths = [str(path) for path in sorted(DAGS.glob("*.py"))]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *paths], capture_output=True, text=True, check=True
    )
    added, heavy = json.loads(done.stdout.splitlines()[-1])
    assert heavy == []
    # Of the library only what refuses a wrong argument.
    library = [name for name in added if name.startswith("lakeformat")]
    assert {".".join(name.split(".")[1:3]) for name in library if "." in name} <= {
        "environment",
        "errors",
        "tables",
        "tables.checks",
        "tables.time_format",  # of partitions
        "types",
        "types.amounts",  # sizes and durations
        "types.closest",
    }
    ours = [name for name in added if name.startswith("airflow_provider_lake")]
    assert 10 < len(ours) < BUDGET
    assert len(added) < 4 * BUDGET, added


ONE_BY_ONE = """
import importlib, json, os, pkgutil, sys
from airflow.sdk import DAG, BaseHook, BaseOperator, BaseSensorOperator, task

for name in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    before = set(sys.modules)
    package = importlib.import_module("airflow_provider_lake." + name)
    loaded = []
    for each in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{each.name}")
        loaded.append([each.name, sorted(set(sys.modules) - before)])
        before = set(sys.modules)
    print(json.dumps([name, loaded]), flush=True)
    os._exit(0)
"""


def test_an_operator_loads_few_modules_and_each_further_one_hardly_any():
    """Operators and sensors, each in a process that has loaded Airflow alone."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, "operators", "sensors"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(json.loads(line) for line in done.stdout.splitlines())

    assert [*found] == ["operators", "sensors"]
    for (first, loaded), *further in found.values():
        assert len(loaded) <= 40, (first, loaded)
        assert {name: more for name, more in further if len(more) > 3} == {}
