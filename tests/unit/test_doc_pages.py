"""The examples of the pages in docs/ print their shown output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, kind: str) -> str:
    text = (ROOT / "docs" / page).read_text()
    return "".join(re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(
    "page", ["checks.md", "expiry.md", "maintenance.md", "tags-and-branches.md"]
)
def test_the_example_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(blocks(page, "python"), {"__name__": "__main__"})
    assert blocks(page, "text")
    assert capsys.readouterr().out == blocks(page, "text")
