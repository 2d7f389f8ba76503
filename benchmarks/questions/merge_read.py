"""Streams a primary-key table of five overlapping runs, merged by a BIGINT key."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.merge_question import MergeQuestion, Numbers, merge_question

__all__ = ["QUESTION"]


def key(numbers: Numbers) -> dict[str, pa.Array]:
    """Return the key ``k``: numbers with gaps."""
    return {"k": pa.array(numbers * 7 + 1_000_000_000)}


QUESTION: MergeQuestion = merge_question(
    "What does merging five overlapping runs cost beyond reading their files?", key, 0.65
)
