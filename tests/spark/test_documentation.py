"""The page about Spark: its examples run as they stand there, and every option is explained."""

import re
from pathlib import Path

from spark_jobs.source.options import OPTIONS, Use

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_run_and_print_what_they_say(spark, tmp_path, monkeypatch, capsys):
    """The session of the tests is the one that is there already, and stays in its folder."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    known = {}

    for block in blocks:
        here = block.replace('"checkpoint"', repr(str(tmp_path / "checkpoint")))
        exec(compile(here, str(PAGE), "exec"), known)

    told = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print.*?  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert told == promised
    assert known["query"].exception() is None
    assert known["lake"].open_catalog("warehouse").table("shop.copy").scan().count() == 1000


def test_every_option_of_the_format_is_explained():
    for option in OPTIONS:
        uses = "all" if len(option.uses) == len(Use) else ", ".join(option.uses)
        assert f"| `{option.name}` | {uses} | {option.meaning} |" in TEXT
