"""Pictures of what people see in Airflow's pages: ``python tests/stack/screenshots.py FOLDER``.

Needs Chromium and its driver for Python: ``apt-get install chromium`` and ``pip install
playwright``. Nobody compares the pictures: they are made to be looked at.
"""

import json
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bin"))

from local_airflow import LocalAirflow  # noqa: E402 - bin/ is no package

PATIENCE = 600
DAG = "ingest_then_compact"


def main(target):
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lake-pictures-") as folder:
        place = Path(folder)
        connection = {"conn_type": "lake", "extra": {"warehouse": str(place / "warehouse")}}
        settings = {
            "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
            "PYTHONPATH": str(ROOT),
        }
        write_files(place / "incoming")
        with LocalAirflow(
            place / "airflow", ROOT / "dags", settings=settings, folder=place
        ) as airflow:
            airflow.wait_for_dags(DAG, seconds=PATIENCE)
            airflow.set_paused(DAG, False)
            airflow.wait_for_runs(DAG, 1, seconds=PATIENCE)
            run = f"dags/{DAG}/runs/{airflow.runs(DAG)[0]}"
            take_pictures(airflow.url, run, ("publish", "compact"), target)
    print(f"pictures are in {target}")


def write_files(incoming):
    today = datetime.now(UTC)
    for shop in ("berlin", "paris"):
        for day in (today - timedelta(days=1), today):
            files = incoming / shop / f"{day:%Y-%m-%d}"
            files.mkdir(parents=True)
            (files / "part-1.csv").write_text("id,item,price\n1,tea,5\n")


def take_pictures(url, run, tasks, target):
    """Of a run, the tasks of it with their links, and the form of a new connection."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1500, "height": 1300})
        page.set_default_timeout(120_000)

        def show(path, name):
            page.goto(f"{url}/{path}")
            snap(name)

        def snap(name):
            page.wait_for_timeout(4000)
            page.screenshot(path=target / f"{name}.png", full_page=True)

        show(run, "run")
        for task in tasks:
            show(f"{run}/tasks/{task}", f"links-{task}")
        show(f"{run}/tasks/{tasks[-1]}/xcom", "link-followed")
        page.goto(f"{url}/connections")
        page.get_by_role("button", name="Add Connection").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("combobox").first.click()
        page.keyboard.type("lake")
        page.keyboard.press("Enter")
        snap("connection-form")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
