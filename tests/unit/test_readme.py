"""The README and the guides of the library are true: examples run, and print the shown output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakeformat.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}


def blocks(kind: str, page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def without_moments(text: str) -> list[str]:
    """Lines without what differs from run to run: instants and the warehouse's directory."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", "<time>", text)
    text = re.sub(r"file://\S*/shop\.db", "<warehouse>/shop.db", text)
    text = re.sub(r"\$ \S*lake --warehouse \S+", "$ lake --warehouse <warehouse>", text)
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", ["README.md", "docs/library.md", "docs/stream-and-batch.md"])
def test_the_examples_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    """All of them in one go, and the commands after them, on the warehouse they have made."""
    examples = [block for block in blocks("python", page) if "airflow" not in block]
    monkeypatch.chdir(tmp_path)
    exec("\n".join(examples), {"__name__": "__main__"})
    assert capsys.readouterr().out == "".join(blocks("text", page))
    for block in blocks("console", page):
        for command, said in re.findall(r"^\$ (lake .*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
            shown = CliRunner().invoke(app, command.split()[1:], env={"COLUMNS": "120"})
            assert shown.exit_code == 0, shown.output
            assert without_moments(shown.stdout) == without_moments(said), command


def printed(command: list[str | Path], folder: Path) -> str:
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout


def test_the_demo_prints_what_the_readme_says(tmp_path):
    demo = [sys.executable, ROOT / "bin" / "demo.py", "--warehouse", tmp_path / "warehouse"]
    shown = printed(demo, ROOT)
    said = next(block for block in blocks("console") if block.startswith("$ bin/demo --quick\n"))
    assert without_moments(shown) == without_moments(said.removeprefix("$ bin/demo --quick\n"))
