"""Airflow finds the provider by its package metadata alone."""

import json
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml

import airflow_provider_lake
from airflow_provider_lake.provider_info import get_provider_info
from tests.airflow.versions import macros_of_plugins, providers_of_tasks, since


def test_the_provider_info_keeps_airflows_schema():
    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text())

    jsonschema.validate(get_provider_info(), schema)
    assert set(get_provider_info()) <= set(schema["properties"])


@since("3.2", "two fields of a provider's manifest")
def test_the_manifest_keeps_airflows_schema():
    schema = json.loads(files("airflow").joinpath("provider.yaml.schema.json").read_text())
    manifest = yaml.safe_load((Path(__file__).parents[2] / "provider.yaml").read_text())

    jsonschema.validate(manifest, schema)
    assert manifest["versions"] == [version("airflow-provider-lake")]


def test_the_provider_is_discovered():
    from airflow.providers_manager import ProvidersManager

    assert "airflow-provider-lake" in ProvidersManager().providers


def test_tasks_find_the_hook_by_its_connection_type():
    hook = providers_of_tasks().hooks["lake"]

    assert hook.hook_class_name == "airflow_provider_lake.hooks.lake.LakeHook"
    assert hook.connection_id_attribute_name == "lake_conn_id"


@pytest.fixture
def form():
    """The form of a connection. Airflow 3.1 has none once its process has loaded the hooks."""
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
    from airflow.providers_manager import ProvidersManager

    ProvidersManager()._cleanup()
    [form] = [hook for hook in HookMetaService.hook_meta_data() if hook.connection_type == "lake"]
    return form


def test_people_get_a_form_that_asks_for_the_warehouse(form):
    host = form.standard_fields.host
    assert (host.hidden, host.title) == (False, "Warehouse")
    assert "s3://bucket/warehouse" in host.placeholder


@since("3.2", "fields of a form in the metadata of its provider")
def test_the_form_has_a_section_for_each_cloud(form):
    sections = {}
    for name, field in form.extra_fields.items():
        sections.setdefault(field["schema"].get("section"), []).append(name.partition("_")[0])

    assert sections.pop(None)[:2] == ["engine", "spark"]
    assert {section: {*names} for section, names in sections.items()} == {
        "Amazon S3 and compatible stores": {"s3"},
        "Google Cloud Storage": {"gs"},
        "Azure Data Lake Storage": {"azure"},
    }


@since("3.2", "fields of a form in the metadata of its provider")
def test_a_choice_that_nobody_has_made_is_shown_as_what_it_means(form):
    """Without these words the form shows "null"."""
    choices = {
        name: field["schema"]
        for name, field in form.extra_fields.items()
        if "enum" in field["schema"]
    }

    assert {*choices} == {"format", "metastore", "engine"}
    for schema in choices.values():
        assert None in schema["enum"]
        assert schema["values_display"]["null"].startswith("Default: ")


def test_the_plugin_is_registered():
    from airflow_provider_lake.jobs.identity import commit_user

    assert macros_of_plugins().lake.commit_user is commit_user


def test_every_operator_and_link_is_listed():
    from airflow.providers_manager import ProvidersManager

    info = get_provider_info()
    named = {module for each in info["operators"] for module in each["python-modules"]}
    folder = Path(airflow_provider_lake.__file__).parent
    written = {path.stem for path in (folder / "operators").glob("*.py")} - {"__init__", "job"}

    assert named == {f"airflow_provider_lake.operators.{stem}" for stem in written}
    assert set(info["extra-links"]) <= set(ProvidersManager().extra_links_class_names)


def test_every_decorator_is_listed():
    named = {each["class-name"] for each in get_provider_info()["task-decorators"]}
    folder = Path(airflow_provider_lake.__file__).parent / "decorators"
    written = {path.stem for path in folder.glob("lake_*.py")}

    assert named == {f"airflow_provider_lake.decorators.{stem}.{stem}_task" for stem in written}


def test_the_settings_are_known_to_airflow():
    from airflow.configuration import conf
    from airflow.providers_manager import ProvidersManager

    ProvidersManager().initialize_providers_configuration()  # as Airflow's programs do

    assert conf.get("lake", "snapshot_url") == ""


def test_importing_the_provider_loads_no_data_stack():
    names = [
        "hooks.lake",
        "operators.ingest",
        "operators.compact",
        "decorators.lake_job",
        "decorators.lake_commit",
        "jobs.metrics",
        "plugin",
        "jobs.identity",
        "sensors.snapshot",
        "jobs.lineage",
    ]
    code = (
        f"import sys, {', '.join(f'airflow_provider_lake.{name}' for name in names)}; "
        "print([n for n in ('pyspark', 'pyarrow', 'polars', 'lakeformat') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def modules_loaded_by(statements):
    code = f"import sys; {statements}; print(len(before), *sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


def test_all_operators_together_load_few_modules_of_our_own():
    """The cost of parsing a DAG file; Airflow's Spark operator is loaded by tasks that submit."""
    every = [f"airflow_provider_lake.operators.{job}" for job in ("compact", "ingest", "tag")]
    every += [f"airflow_provider_lake.decorators.{name}" for name in ("lake_job", "lake_commit")]
    loaded = modules_loaded_by(
        "import airflow.sdk; from airflow.sdk import BaseOperator, DAG; "
        f"before = set(sys.modules); import {', '.join(every)}"
    )
    strangers = [
        name
        for name in loaded
        if name.partition(".")[0]
        not in ("airflow_provider_lake", "spark_jobs", "airflow", *sys.stdlib_module_names)
    ]

    unwanted = ("airflow.providers.apache", "airflow.providers.openlineage")

    assert len(loaded) <= 60, loaded
    assert strangers == []
    assert [name for name in loaded if name.startswith(unwanted)] == []
