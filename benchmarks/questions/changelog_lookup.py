"""Full compaction of a large run and five new ones: without a changelog, and with each producer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import lakeformat as lake
from benchmarks.compaction import Made, distinct_keys, values_of
from benchmarks.key_runs import SEED
from benchmarks.keyed_table import NAME, VALUES
from benchmarks.question import Question
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

RUNS = 5
BASELINE = "no changelog"
PRODUCERS = {BASELINE: "none", "lookup": "lookup", "full-compaction": "full-compaction"}


def write_table(folder: Path, rows: int) -> None:
    """Write a table. Half of its rows are compacted; the other half is in new runs with random
    keys.
    """
    random = np.random.default_rng(SEED)
    catalog = lake.open_catalog(str(folder))
    catalog.create_database("bench")
    values = values_of(rows)
    old = _run(np.arange(rows // 2) * 2, values)
    options = {"bucket": "1", "target-file-size": "1 gb"}
    table = catalog.create_table(NAME, old.schema, primary_key=["k"], options=options)
    table.write(old)
    table.compact(executor="serial")
    for number in range(RUNS):
        keys = np.sort(random.choice(rows, rows // 2 // RUNS, replace=False))
        table.write(_run(keys, values.slice(old.num_rows + number * len(keys))))


def _run(keys: np.ndarray, values: pa.Table) -> pa.Table:
    own = values.slice(0, len(keys))
    return pa.table({**key(keys), **dict(zip(VALUES, own.columns, strict=True))})


def compact(table: Path, folder: Path, *, producer: str) -> Callable[[], Made]:
    """Return a function that compacts the table in full once, with this changelog producer."""
    shutil.copytree(table, folder / "wh", copy_function=os.link)
    catalog = lake.open_catalog(str(folder / "wh"))
    catalog.alter_table(NAME, lake.set_option("changelog-producer", producer))

    def work() -> Made:
        opened = catalog.table(NAME)
        opened.compact(executor="serial")
        return lambda: opened.scan(["k"]).to_batches()

    return work


QUESTION = Question(
    sentence="What does a changelog add to the cost of a compaction?",
    rows=2_000_000,
    make_data=write_table,
    open_data=lambda folder: folder,
    candidates={name: partial(compact, producer=each) for name, each in PRODUCERS.items()},
    baseline=BASELINE,
    answer=distinct_keys,
    targets={"lookup": 0.5, "full-compaction": 0.5},
)
