"""Full compaction of ten runs that share no key: files change their level, none is rewritten."""

from __future__ import annotations

from benchmarks.compaction import compaction_question
from benchmarks.key_runs import ranges
from benchmarks.questions.merge_read import key

__all__ = ["QUESTION"]

QUESTION = compaction_question(
    "What does compacting files without overlap cost?",
    key=key,
    runs=ranges(10, again=0),
    target=1.0,
)
