"""The examples of the pages about Spark run as printed."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("spark.md", "spark-streams.md")
TEXT = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)


def test_the_examples_run_and_print_what_they_say(spark, tmp_path, monkeypatch, capsys):
    """Run the examples in the session of the tests, which keeps its folder."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    known = {}

    for block in blocks:
        here = block.replace('"checkpoint"', repr(str(tmp_path / "checkpoint")))
        exec(compile(here, str(DOCS), "exec"), known)

    told = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print.*?  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert told == promised
    assert known["query"].exception() is None
    assert known["lake"].open_catalog("warehouse").table("shop.copy").scan().count() == 1000
