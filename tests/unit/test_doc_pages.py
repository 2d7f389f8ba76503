"""The examples of the pages in docs/ print their shown output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def blocks(page: str, kind: str) -> str:
    text = (ROOT / "docs" / page).read_text()
    return "".join(re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(
    "page", ["checks.md", "expiry.md", "maintenance.md", "tags-and-branches.md"]
)
def test_the_example_prints_what_the_page_says(page, tmp_path):
    shown = subprocess.run(
        [sys.executable, "-c", blocks(page, "python")],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert blocks(page, "text")
    assert shown.stdout == blocks(page, "text")
