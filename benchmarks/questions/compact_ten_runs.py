"""Full compaction of ten runs with random keys, a tenth of them from earlier runs."""

from __future__ import annotations

from benchmarks.compaction import compaction_question
from benchmarks.key_runs import scattered
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does compacting ten runs of random keys cost beyond reading and writing?",
    key=key,
    runs=scattered(10, again=0.1),
    target=0.9,
)
