"""The provider in Airflow's own interface: the form, its secrets, a template."""

import json
import time
from pathlib import Path

import pytest
from browser import Browser, find_chromium
from local_airflow import LocalAirflow

from airflow_provider_lake.provider_info import get_provider_info

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300
SECRET = "not-to-be-shown"
FORM = "[role=dialog]"
OTHERS = "Extra Fields"
S3 = "Amazon S3 and compatible stores"

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="needs a browser: apt-get install chromium"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("interface")


@pytest.fixture(scope="module")
def airflow(place):
    settings = {
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "PYTHONPATH": str(ROOT),
    }
    with LocalAirflow(place / "airflow", ROOT / "dags", settings=settings, folder=place) as airflow:
        airflow.wait_for_dags("ingest_then_compact", seconds=PATIENCE)
        yield airflow


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path) as browser:
        yield browser


def shown(what, name):
    """JavaScript that finds an element by its text."""
    return f"[...document.querySelectorAll('{what}')].find(e => e.innerText.trim() === '{name}')"


def values_of(browser):
    """Return the values of the form's fields by name, and their kinds."""
    found = f"[...document.querySelectorAll('{FORM} input[name^=element_]')]"
    said = browser.ask(f"JSON.stringify({found}.map(e => [e.name, [e.type, e.value]]))")
    return {name.removeprefix("element_"): shown for name, shown in json.loads(said)}


def sections():
    """Return the fields of each section of the form; opening one closes the one before."""
    [kind] = get_provider_info()["connection-types"]
    found = {}
    for field in kind["conn-fields"].values():
        found.setdefault(field["schema"].get("section", OTHERS), []).append(field)
    return found


def open_section(browser, name):
    browser.click(shown(f"{FORM} button", name))
    time.sleep(1)  # it slides into its place


def test_a_connection_is_made_by_its_form_and_its_secrets_are_not_shown_again(
    airflow, browser, place
):
    browser.open(f"{airflow.url}/connections")
    browser.click(shown("button", "Add Connection"))
    browser.fill("input[name=connection_id]", "lake_eu")
    browser.fill(f"{FORM} input[role=combobox]", "lake")
    browser.click(shown("[role=option]", "Lake"))
    browser.fill("input[name=host]", "s3://bucket/warehouse")
    assert "Warehouse" in browser.text()
    save = shown(f"{FORM} button", "Save")

    for section, fields in sections().items():
        open_section(browser, section)
        form = browser.text()
        for field in fields:
            assert field["label"] in form
            assert field.get("description", "") in form
    for hidden in ("Login", "Password", "Port", "Schema"):
        assert browser.ask(f"document.querySelector('{FORM} [name={hidden.lower()}]')") is None
    open_section(browser, OTHERS)
    browser.fill("input[name=element_secret_options]", json.dumps({"token": SECRET}))
    open_section(browser, S3)
    browser.fill("input[name=element_s3_secret_key]", SECRET)
    assert values_of(browser)["s3_secret_key"] == ["password", SECRET]
    browser.screenshot(place / "form.png")
    browser.click(save)
    browser.wait_for_text("1 Connection")

    listed = airflow.ask("GET", "connections/lake_eu")
    assert listed["conn_type"] == "lake"
    extra = json.loads(listed["extra"])
    assert (listed["host"], extra["engine"]) == ("s3://bucket/warehouse", "auto")
    assert extra["s3_secret_key"] == extra["secret_options"] == "***"

    browser.open(f"{airflow.url}/connections")
    browser.click("document.querySelector('button[aria-label=\"Edit Connection\"]')")
    browser.wait_for(shown(f"{FORM} button", OTHERS))
    open_section(browser, S3)
    again = values_of(browser)
    open_section(browser, OTHERS)
    again |= values_of(browser)
    host = browser.ask(f"document.querySelector('{FORM} input[name=host]').value")
    assert host == "s3://bucket/warehouse"
    assert again["s3_secret_key"] == again["secret_options"] == ["password", "***"]
    assert SECRET not in browser.ask("document.documentElement.outerHTML")
    browser.screenshot(place / "edit.png")


def test_a_template_is_a_dag_whose_tasks_and_code_are_seen(airflow, browser, place):
    browser.open(f"{airflow.url}/dags/ingest_then_compact")
    tasks = airflow.ask("GET", "dags/ingest_then_compact/tasks")["tasks"]
    assert {task["task_id"] for task in tasks} >= {"stage_shop", "publish", "compact"}
    for task in tasks:
        path = f"/dags/ingest_then_compact/tasks/{task['task_id']}"
        browser.wait_for(f"document.querySelector('a[href^=\"{path}\"]')")
    time.sleep(1)  # for what moves into its place around it
    browser.screenshot(place / "dag.png")

    browser.open(f"{airflow.url}/dags/ingest_then_compact/code")
    browser.wait_for_text("LakeCompactOperator")
    browser.open(airflow.url)
    assert "Dag Import Error" not in browser.wait_for_text("Dags")
