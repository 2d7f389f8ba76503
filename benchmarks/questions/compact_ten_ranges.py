"""Full compaction of ten runs; each is a range of keys that overlaps a tenth of the range
before it.
"""

from __future__ import annotations

from benchmarks.compaction import compaction_question
from benchmarks.key_runs import ranges
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does compacting ten overlapping ranges cost beyond reading and writing?",
    key=key,
    runs=ranges(10, again=0.1),
    target=0.9,
)
