"""The README is true: its example runs, and its outputs are what the programs print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def without_moments(text: str) -> list[str]:
    """Lines without what differs from run to run: instants and the warehouse's directory."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", "<time>", text)
    text = re.sub(r"file://\S*/shop\.db", "<warehouse>/shop.db", text)
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_library_example_prints_what_the_readme_says(tmp_path):
    example = next(block for block in blocks("python") if "import lakeformat" in block)
    shown = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.stdout == blocks("text")[0]


def test_the_demo_prints_what_the_readme_says(tmp_path):
    shown = subprocess.run(
        [sys.executable, ROOT / "bin" / "demo.py", "--warehouse", tmp_path / "warehouse"],
        capture_output=True,
        text=True,
        check=True,
    )
    said = next(block for block in blocks("console") if block.startswith("$ bin/demo\n"))
    assert without_moments(shown.stdout) == without_moments(said.removeprefix("$ bin/demo\n"))


def test_links_inside_the_repository_lead_somewhere():
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), f"{name} links to {target}"
