"""Full compaction of a hundred buckets, in threads or one after the other.

The report compares CPU time, which threads do not save; their gain is in the wall times.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.compaction import Made, compact, distinct_keys, write_table
from benchmarks.key_runs import scattered
from benchmarks.question import Question
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

QUESTION: Question[Path, Made] = Question(
    sentence="What does compacting a hundred buckets in threads cost beyond doing it serially?",
    rows=10_000_000,
    make_data=lambda folder, rows: write_table(
        folder, rows, key=key, runs=scattered(5, again=0.5), buckets=100
    ),
    open_data=lambda folder: folder,
    candidates={
        "serial": partial(compact, executor="serial"),
        "threads": partial(compact, executor="threads"),
    },
    baseline="serial",
    answer=distinct_keys,
    targets={"threads": 0.9},
)
