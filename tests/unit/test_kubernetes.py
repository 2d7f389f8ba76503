"""The files for Kubernetes fit the chart, the code, the page and one another."""

import json
import os
import re
from pathlib import Path

import pytest

from spark_jobs.job_requests.request import read_request
from spark_jobs.runtime.registry import find_job

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which Airflow brings")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docker" / "kubernetes"
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
VALUES = yaml.safe_load((FOLDER / "values.yaml").read_text())
MANIFESTS = [*yaml.safe_load_all((FOLDER / "spark.yaml").read_text())]
APPLICATION = yaml.safe_load((FOLDER / "compact-orders.yaml").read_text())
SCHEMA = "CHART_SCHEMA"
IMAGES = {"lake-airflow:0.4.0", "lake-spark:0.4.0"}


def secrets_of_the_page():
    """Return the keys of each secret that a command of the page creates, with their texts."""
    found = {}
    for name, literals in re.findall(r"create secret generic (\S+)((?:.*\\\n)*.*)", PAGE):
        found[name] = dict(re.findall(r"--from-literal=(\w+)='([^']*)'", literals))
    return found


@pytest.mark.skipif(
    SCHEMA not in os.environ,
    reason=f"needs the chart's values.schema.json: {SCHEMA}=/path/to/values.schema.json",
)
def test_the_chart_takes_the_values():
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema, which Airflow brings")
    schema = json.loads(Path(os.environ[SCHEMA]).read_text())

    jsonschema.validate(VALUES, schema)
    assert {*VALUES} <= {*schema["properties"]}


def test_each_secret_of_the_files_is_created_on_the_page():
    created = secrets_of_the_page()
    for secret in VALUES["secret"]:
        connection = json.loads(created[secret["secretName"]][secret["secretKey"]])
        name = secret["envName"].removeprefix("AIRFLOW_CONN_").lower()
        assert name == f"{connection['conn_type']}_default"
    [key] = APPLICATION["spec"]["driver"]["envSecretKeyRefs"].values()
    assert json.loads(created[key["name"]][key["key"]])


def test_a_driver_finds_its_pod_s_address():
    [variable] = yaml.safe_load(VALUES["extraEnv"])
    assert variable["name"] == "SPARK_LOCAL_HOSTNAME"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"


def test_the_account_of_the_application_may_create_pods():
    kinds = {manifest["kind"]: manifest for manifest in MANIFESTS}
    account, namespace = "spark", kinds["Namespace"]["metadata"]["name"]

    assert APPLICATION["metadata"]["namespace"] == namespace
    assert APPLICATION["spec"]["driver"]["serviceAccount"] == account
    assert kinds["ServiceAccount"]["metadata"] == {"name": account, "namespace": namespace}
    assert kinds["RoleBinding"]["roleRef"]["name"] == kinds["Role"]["metadata"]["name"]
    assert {
        "kind": "ServiceAccount",
        "name": account,
        "namespace": namespace,
    } in kinds["RoleBinding"]["subjects"]
    assert "pods" in kinds["Role"]["rules"][0]["resources"]


def test_the_request_of_the_application_is_one_that_the_job_takes():
    job, *words = APPLICATION["spec"]["arguments"]
    given = dict(zip(words[::2], words[1::2], strict=True))

    request = read_request(find_job(job).request, json.loads(given["--request"]))

    assert request.table == "shop.orders"
    assert request.engine == "spark"  # the executors would have no work
    assert given["--catalog-options-env"] in APPLICATION["spec"]["driver"]["envSecretKeyRefs"]


def test_each_image_is_built_by_a_file_beside_it():
    texts = {path.name: path.read_text() for path in FOLDER.iterdir()}
    built = {name for text in texts.values() for name in re.findall(r"-t \S+/(\S+) \.", text)}
    airflow = VALUES["images"]["airflow"]

    assert built == IMAGES
    assert f"{airflow['repository']}:{airflow['tag']}".partition("/")[2] in built
    assert APPLICATION["spec"]["image"].partition("/")[2] in built


def test_the_page_installs_the_chart_of_the_values():
    [version] = re.findall(r"valid for chart (\S+)\)", (FOLDER / "values.yaml").read_text())
    assert f"apache-airflow/airflow --version {version} " in PAGE


def test_versions_are_the_tested_ones():
    pinned = dict(
        re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements/tested.txt").read_text(), re.M)
    )
    assert VALUES["airflowVersion"] == pinned["apache-airflow"]
    assert (
        f"apache/airflow:{pinned['apache-airflow']}-" in (FOLDER / "airflow.Dockerfile").read_text()
    )
    assert f"apache/spark:{pinned['pyspark']}" in (FOLDER / "spark.Dockerfile").read_text()
    assert APPLICATION["spec"]["sparkVersion"] == pinned["pyspark"]
