"""Each file of the packages names its licence in its first lines, as tools for licences read it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = "# SPDX-License-Identifier: Apache-2.0\n"
FOLDERS = ("lakeformat", "spark_jobs", "airflow_provider_lake", "dags")


def test_each_file_begins_with_its_licence():
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    lacking = [file for file in files if not file.read_text("utf-8").startswith(HEADER)]
    assert len(files) > 500
    assert lacking == [], f"begin these files with {HEADER}"
