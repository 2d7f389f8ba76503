"""Streams a primary-key table of five overlapping runs, merged by a key of two columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.merge_question import MergeQuestion, Numbers, merge_question

__all__ = ["QUESTION"]


def key(numbers: Numbers) -> dict[str, pa.Array]:
    """Return the key of two columns: a text and a number."""
    digits = np.char.zfill((numbers // 10).astype(np.str_), 9)
    line = pa.array((numbers % 10).astype(np.int32))
    return {"k": pa.array(np.char.add("order-", digits)), "line": line}


QUESTION: MergeQuestion = merge_question(
    "What does merging runs by a key of two columns cost beyond reading their files?", key, 0.5
)
