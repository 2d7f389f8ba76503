"""Full compaction of ten runs, a tenth of whose keys meet."""

from __future__ import annotations

from benchmarks.compaction import compaction_question
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does compacting ten runs cost beyond reading and writing?",
    key=key,
    runs=10,
    overlap=0.1,
    target=0.9,
)
