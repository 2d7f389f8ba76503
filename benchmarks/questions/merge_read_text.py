"""Streams a primary-key table of five overlapping runs, merged by a STRING key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.merge_question import MergeQuestion, Numbers, merge_question

__all__ = ["QUESTION"]


def key(numbers: Numbers) -> dict[str, pa.Array]:
    """Return the key ``k``: texts that begin with the same characters."""
    digits = np.char.zfill((numbers * 7).astype(np.str_), 12)
    return {"k": pa.array(np.char.add("order-", digits))}


QUESTION: MergeQuestion = merge_question(
    "What does merging runs by a text key cost beyond reading their files?", key, 0.5
)
