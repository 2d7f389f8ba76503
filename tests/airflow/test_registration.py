"""Airflow finds the provider by its package metadata alone."""

import json
import subprocess
import sys
from importlib.resources import files

import jsonschema
import pytest

from airflow_provider_lake.provider_info import get_provider_info


def test_the_provider_info_keeps_airflows_schema():
    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text())

    jsonschema.validate(get_provider_info(), schema)
    assert set(get_provider_info()) <= set(schema["properties"])


def test_the_provider_is_discovered():
    from airflow.providers_manager import ProvidersManager

    assert "airflow-provider-lake" in ProvidersManager().providers


def test_tasks_find_the_hook_by_its_connection_type():
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    hook = ProvidersManagerTaskRuntime().hooks["lake"]

    assert hook.hook_class_name == "airflow_provider_lake.hooks.lake.LakeHook"
    assert hook.connection_id_attribute_name == "lake_conn_id"


def test_people_get_a_form_that_asks_for_the_warehouse():
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

    [form] = [hook for hook in HookMetaService.hook_meta_data() if hook.connection_type == "lake"]

    assert list(form.extra_fields)[0] == "warehouse"
    assert form.standard_fields.host.hidden


def test_the_plugin_is_registered():
    from airflow.sdk import plugins_manager

    plugins_manager.integrate_macros_plugins()
    from airflow.sdk.execution_time import macros

    from airflow_provider_lake.identity import commit_user

    assert macros.lake.commit_user is commit_user


@pytest.mark.parametrize(
    "module",
    ["hooks.lake", "operators.ingest", "plugin", "identity", "sensors.snapshot", "lineage"],
)
def test_importing_the_provider_loads_no_data_stack(module):
    code = (
        f"import sys, airflow_provider_lake.{module}; "
        "print([n for n in ('pyspark', 'pyarrow', 'polars', 'lakeformat') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
