"""The tutorial does what it shows: each file is saved and each command runs as printed there.

Airflow's own commands run in this process here, which is quicker; tests/stack/test_tutorial.py
types them.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.airflow.conftest import TEST_DAGS
from tests.tutorial_page import ROOT, Command, SavedFile, shows, steps

SETS_UP = ("bin/demo ", ". ", "mkdir ", "export ", "airflow db ", "airflow standalone")


def test_each_step_of_the_tutorial_shows_what_the_page_says(
    airflow_db, tmp_path, connect, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    connect("lake_default", conn_type="lake", extra={"warehouse": str(tmp_path / "warehouse")})
    typed = []
    for step in steps():
        if isinstance(step, SavedFile):
            save(tmp_path / step.name, step.text)
        elif not step.text.startswith(SETS_UP):
            typed.append(step.text.split()[0])
            assert shows(output_of(step), step.shown), step.text
    assert {*typed} == {"python", "lake", "airflow"}


def save(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def output_of(step: Command):
    program, *words = shlex.split(step.text)
    if program == "airflow":
        return run_dag(words)
    if program == "lake":
        return run_lake(words)
    assert program == "python"
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def run_lake(words):
    from typer.testing import CliRunner

    from lakeformat.cli.app import app

    done = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    return done.output


def run_dag(words):
    from tests.airflow.versions import DagBag

    *command, dag_id = words
    assert command == ["dags", "test"]
    bag = DagBag(str(TEST_DAGS / "tutorial_page.py"))
    assert bag.import_errors == {}
    run = bag.dags[dag_id].test()
    return f"DagRun Finished: state={run.state}"
