"""A changelog replayed from the first snapshot gives the rows of a read, for every producer.

Each example is a random table, compacted after some of its commits. ``EXAMPLES=3000`` tries
so many tables of each pair of engine and producer.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from tests.golden.values import rows_of
from tests.merge_scenarios import Change, Scenario, loosened, scenarios
from tests.sampling import count

from .test_merge_property import MODES, new_table

TABLES = count(4, 20, "EXAMPLES")
PAIRS = [
    *((engine, "lookup") for engine in ("deduplicate", "partial-update", "aggregation")),
    *((engine, "full-compaction") for engine in ("deduplicate", "partial-update", "aggregation")),
    ("first-row", "lookup"),
]
VARIANTS: dict[str, dict[str, str]] = {
    "plain": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "updates without a change left out": {"changelog-producer.row-deduplicate": "true"},
    "many files": {"target-file-size": "1 b", "compaction.small-file-ratio": "0"},
    "a format for each level": {"file.format.per.level": "0:avro,5:orc"},
}
BUCKETS = {**MODES, "postponed": {"bucket": "-2", "postpone.default-bucket-num": "2"}}


class Replay:
    """A table replayed from its changelog."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._rows: dict[str, dict[str, Any]] = {}

    def apply(self, changes: pa.Table) -> None:
        """Every change must fit the changes before it."""
        kinds = changes["rowkind"].to_pylist()
        rows = loosened(rows_of(changes.drop_columns(["rowkind"])), self._scenario)
        updated: dict[str, Any] | None = None
        for kind, row in zip(kinds, rows, strict=True):
            key = repr([row[name] for name in self._scenario.primary_key])
            assert (kind == "+U") == (updated is not None), "a -U and its +U come one by one"
            if kind in ("-U", "-D"):
                before = self._rows.pop(key)
                assert repr(before) == repr(row)
                updated = before if kind == "-U" else None
                continue
            assert key not in self._rows
            self._rows[key] = row
            updated = None
        assert updated is None

    def assert_tells(self, found: pa.Table) -> None:
        rows = loosened(rows_of(found), self._scenario)
        assert sorted(map(repr, self._rows.values())) == sorted(map(repr, rows))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("engine", "producer"), PAIRS)
def test_the_changelog_tells_how_the_table_came_to_its_rows(engine: str, producer: str):
    @settings(
        max_examples=TABLES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )
    @given(
        scenarios(engine),
        st.sampled_from(list(VARIANTS)),
        st.sampled_from(list(BUCKETS)),
        st.integers(1, 3),
        st.lists(st.sampled_from(["minor", "full", None]), min_size=4, max_size=4),
    )
    def holds(
        scenario: Scenario, variant: str, buckets: str, trigger: int, compactions: list[Any]
    ) -> None:
        options = {**VARIANTS[variant], **BUCKETS[buckets], "changelog-producer": producer}
        options["num-sorted-run.compaction-trigger"] = str(trigger)
        options["num-levels"] = "6"
        if "deletion-vectors.enabled" in options:
            assume((engine, producer) not in (("first-row", "lookup"), (engine, "full-compaction")))
        commits = scenario.commits
        if (engine, producer) == ("partial-update", "lookup"):
            commits = [without_values_of_no_sequence(scenario, each) for each in commits]
        with new_table(scenario, options) as table:
            replay = Replay(scenario)
            for changes, compaction in zip(commits, compactions, strict=False):
                write(table, scenario, changes)
                if compaction is not None:
                    check(table, replay, compaction)
            check(table, replay, "full")

    holds()


def without_values_of_no_sequence(scenario: Scenario, changes: list[Change]) -> list[Change]:
    """Retracts without the values of a sequence group of which they have no sequence.

    A retract that is the oldest of its key in a merge, or removes the row, leaves its values there.
    The next compaction that writes that row beside rows of level 0 asks the engine about it alone,
    which skips a group without a sequence: those values become null. The changelog has no row of a
    key without rows of level 0, so no changelog replays to the rows read then, in Java too.
    """

    def taken(kind: str, row: dict[str, Any]) -> dict[str, Any]:
        left = dict(row)
        for sequence, protected in scenario.sequence_groups:
            if kind in ("-U", "-D") and all(row[name] is None for name in sequence):
                left.update(dict.fromkeys(protected))
        return left

    return [(kind, taken(kind, row)) for kind, row in changes]


def write(table: lake.Table, scenario: Scenario, changes: list[Change]) -> None:
    rows = pa.Table.from_pylist([row for _, row in changes], schema=scenario.arrow_schema)
    try:
        table.write(rows, [kind for kind, _ in changes])
    except lake.LakeError:  # an overflow, or retracts that the engine does not take
        assume(False)


def check(table: lake.Table, replay: Replay, strategy: str) -> None:
    """The changelog of a compaction leads from the rows before it to those after it."""
    try:
        report = table.compact(strategy=strategy, executor="serial")
    except lake.LakeError:  # the rows of several commits do not go together
        assume(False)
    for number in sorted(report.snapshot_ids):
        replay.apply(table.changes(number - 1, number, "changelog").to_arrow())
    is_told = table.options.changelog_producer == "lookup" or strategy == "full"
    replay.assert_tells((table if is_told else table.system_table("ro")).scan().to_arrow())
