"""The deletes of a node agree with a dict of the largest LSN of each key."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from lakeformat.mixed.read.key_deletes import KeyDeletes


def test_rows_are_deleted_by_larger_lsns_only():
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    for _ in range(60):
        count = draw.choice([1, 3, 40])
        deletes = [
            (draw.randrange(8), draw.choice(["a", "b", None]), draw.randrange(5), draw.randrange(6))
            for _ in range(count)
        ]
        largest: dict[tuple[int, str | None], tuple[int, float]] = {}
        for number, text, transaction, offset in deletes:
            key = (number, text)
            largest[key] = max(largest.get(key, (-1, -1)), (transaction, offset))
        numbers, texts, transactions, offsets = zip(*deletes, strict=True)
        found = KeyDeletes(
            [pa.array(numbers, pa.int32()), pa.array(texts, pa.string())],
            np.array(transactions, np.int64),
            np.array(offsets, np.int64),
        )
        rows = [(draw.randrange(8), draw.choice(["a", "b", None])) for _ in range(20)]
        keys = [
            pa.array([number for number, _ in rows], pa.int32()),
            pa.array([text for _, text in rows], pa.string()),
        ]
        of_rows = np.array([draw.randrange(6) for _ in rows], np.int64)
        for transaction in range(-1, 6):
            nothing = (-2, -1)
            wanted = [
                largest.get(key, nothing) > (transaction, offset)
                for key, offset in zip(rows, of_rows.tolist(), strict=True)
            ]
            assert found.deleted(keys, transaction, of_rows).tolist() == wanted
            after_all = [largest.get(key, nothing)[0] > transaction for key in rows]
            assert found.deleted(keys, transaction, None).tolist() == after_all


def test_a_version_comes_before_the_lsn():
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    for _ in range(60):
        deletes = [[draw.randrange(5) for _ in range(4)] for _ in range(draw.choice([1, 4, 40]))]
        columns = [np.array(each, np.int64) for each in zip(*deletes, strict=True)]
        largest: dict[int, tuple[int, int, int]] = {}
        for key, transaction, offset, version in deletes:
            known = largest.get(key, (-9, 0, 0))
            largest[key] = max(known, (version - 2, transaction, offset))
        found = KeyDeletes([pa.array(columns[0])], columns[1], columns[2], columns[3] - 2)
        rows = [[draw.randrange(7) for _ in range(3)] for _ in range(20)]
        keys, offsets, versions = (np.array(each, np.int64) for each in zip(*rows, strict=True))
        for transaction in range(-1, 6):
            wanted = [
                largest.get(key, (-9, 0, 0)) > (version - 3, transaction, offset)
                for key, offset, version in rows
            ]
            mask = found.deleted([pa.array(keys)], transaction, offsets, versions - 3)
            assert mask.tolist() == wanted
