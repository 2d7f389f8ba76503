"""Tasks of Spark read text files as ``lake write`` and the Python engine do.

They call the same reader, so that a case of each kind is enough here: all of them are in
``tests/conformance/test_text_files.py``.
"""

from __future__ import annotations

import pytest

import lakeformat as lake
from spark_jobs import ingest
from tests.text_files import CASES, empty_table, rows_in

HERE = [
    "another delimiter and quote",
    "packed latin-1",
    r"\N is null and empty is empty",
    "no header",
    "a time with a zone in JSON",
    "too few values",
    "latin-1 without a word of it",
]


@pytest.mark.parametrize("name", HERE)
def test_a_task_answers_the_same(tmp_path, spark, name):
    case = CASES[name]
    empty_table(tmp_path / "wh", case)
    request = {
        "warehouse": str(tmp_path / "wh"),
        "table": "shop.orders",
        "source": str(case.write(tmp_path)),
        "engine": "spark",
        **case.options,
    }
    if isinstance(case.outcome, list):
        ingest.run(request, spark)
        assert rows_in(tmp_path / "wh", case) == case.outcome
    else:
        with pytest.raises(lake.InvalidRequestError, match=case.outcome):
            ingest.run(request, spark)
