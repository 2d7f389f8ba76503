"""Full compaction of five runs with BIGINT keys; half of each later run's keys are updates."""

from __future__ import annotations

from benchmarks.compaction import compaction_question
from benchmarks.key_runs import scattered
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does compacting five runs cost beyond reading and writing?",
    key=key,
    runs=scattered(5, again=0.5),
    target=0.8,
)
