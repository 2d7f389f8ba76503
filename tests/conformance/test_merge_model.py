"""The dictionary model that random tables are compared with does what Java does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.golden.tables import HOW_TO_UNSKIP
from tests.golden.values import assert_same_rows, rows_of
from tests.golden_cases import GoldenCase, golden_cases
from tests.merge_model import MergeModel, ModelError

CREATION = "what may be created is no matter of the model"
SERIALIZED = "the model knows no bitmaps and sketches"
LEVELS = "which levels are read is no matter of the model"
PARTITIONS = "a key of the model stays in its partition"

BEYOND_THE_MODEL = {
    **dict.fromkeys(("seq-010", "pu-016", "agg-024", "cl-017", "xp-005"), CREATION),
    **dict.fromkeys(("agg-023", "agg-031", "agg-032", "agg-033"), SERIALIZED),
    **dict.fromkeys(("dedup-017", "first-004", "post-001", "post-002"), LEVELS),
    **dict.fromkeys(("xp-001", "xp-002", "xp-003", "xp-004"), PARTITIONS),
    "first-003": "Java refuses it in the compaction of its commit, the model in the read",
    "ow-005": "buckets are no matter of the model",
    "agg-034": "no Java has run it",
}
"""By case, the reason why the model differs from Java."""


def cases_with_keys() -> list[Any]:
    found = [case for case in golden_cases() if case.primary_key]
    assert not found or set(BEYOND_THE_MODEL) <= {case.id for case in found}
    kept = [pytest.param(c, id=c.id) for c in found if c.id not in BEYOND_THE_MODEL]
    return kept or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=HOW_TO_UNSKIP))]


@pytest.mark.parametrize("case", cases_with_keys())
def test_the_model_holds_what_java_s_table_does(case: GoldenCase):
    model = MergeModel(case.types, case.primary_key, case.options, case.partition_keys)
    flushes = []
    for batch in case.batches:
        if "overwrite" in batch.content:
            model.overwrite(batch.rows)
        elif batch.rows:
            model.write(batch.rows)
            flushes.append(model.delta())
    if "error" in case.expected:
        with pytest.raises(ModelError):
            model.read()
        return
    assert_rows(case, model.read(), [case.row(row) for row in case.expected["rows"]])
    stored = [changes for changes in flushes if changes]
    wanted = case.expected.get("stream_delta")
    if wanted is not None:
        for found, part in zip(stored, wanted, strict=True):
            changes = case.changes(part["rows"])
            assert [kind for kind, _ in found] == [kind for kind, _ in sorted_by_key(case, changes)]
            assert_rows(case, [row for _, row in found], [row for _, row in changes])


def sorted_by_key(case: GoldenCase, changes: Sequence[Any]) -> list[Any]:
    return sorted(changes, key=lambda change: [change[1][name] for name in case.primary_key])


def assert_rows(
    case: GoldenCase, found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
) -> None:
    assert_same_rows(*(loosened(case, rows) for rows in (found, wanted)))


def loosened(case: GoldenCase, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    def plain(value: Any) -> Any:
        return (
            sorted(value, key=repr) if isinstance(value, list) and case.has_loose_order else value
        )

    return [
        {name: plain(value) for name, value in row.items()} for row in rows_of(case.table(rows))
    ]
