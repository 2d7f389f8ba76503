"""``lake write`` and the job ``ingest`` give the same answers for the same text file."""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from spark_jobs import ingest
from tests.text_files import CASES, empty_table, rows_in


def words_of(options: dict[str, Any]) -> list[str]:
    """The options as the command line takes them."""
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is False:
            words.append(f"--no-{name}")
        for each in [] if value is False else value if isinstance(value, list) else [value]:
            words += [option, each]
    return words


@pytest.mark.sampled(30)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_both_ways_into_a_table_answer_the_same(tmp_path, case):
    path = case.write(tmp_path)
    by_hand, by_job = tmp_path / "hand", tmp_path / "job"
    empty_table(by_hand, case)
    empty_table(by_job, case)
    words = ["-w", str(by_hand), "write", "shop.orders", str(path), *words_of(case.options)]
    request = {
        "warehouse": str(by_job),
        "table": "shop.orders",
        "source": str(path),
        **case.options,
    }

    shown = CliRunner().invoke(app, words)

    if isinstance(case.outcome, list):
        ingest.run(request)
        assert shown.exit_code == 0, shown.output
        assert rows_in(by_hand, case) == case.outcome
        assert rows_in(by_job, case) == case.outcome
    else:
        assert isinstance(shown.exception, lake.InvalidRequestError)
        with pytest.raises(lake.InvalidRequestError, match=case.outcome) as refused:
            ingest.run(request)
        assert re.search(case.outcome, str(shown.exception))
        if str(path) in str(refused.value):  # else the request itself is refused
            of_job = re.sub(
                r"\.? (With on_schema_change=|The key 'casts').*", "", str(refused.value)
            )
            assert of_job == str(shown.exception)
