"""A compaction changes no row of a random table, and leaves nothing to be compacted.

Each example is a table of its own, compacted after some of its commits and after the last one.
``EXAMPLES=3000`` tries so many tables of each engine.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.compact.compact_report import CompactReport
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.read.plan import plan_files
from tests.golden.values import assert_same_rows, rows_of
from tests.merge_scenarios import ENGINES, Change, Scenario, loosened, scenarios
from tests.sampling import count

from .test_merge_property import MODES, new_table

TABLES = count(4, 60, "EXAMPLES")
FORMATS = ("parquet", "avro", "orc")
SIZES = {
    "one file": {},
    "a file for each row group": {"target-file-size": "1 b"},
    "all files are large": {"compaction.small-file-ratio": "0"},
}
KINDS: dict[str, dict[str, str]] = {
    **MODES,
    "marked rows": {"deletion-vectors.enabled": "true"},
    "postponed": {"bucket": "-2", "postpone.default-bucket-num": "2"},
}
"""The bucket mode of keys, and the option to mark replaced rows."""


def examples(count: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, suppress_health_check=slow, print_blob=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_compaction_changes_no_row_and_leaves_nothing_to_do(engine: str):
    @examples(TABLES)
    @given(
        scenarios(engine),
        st.sampled_from(FORMATS),
        st.sampled_from(list(SIZES)),
        st.sampled_from(list(KINDS)),
        st.lists(st.booleans(), min_size=4, max_size=4),
    )
    def holds(
        scenario: Scenario, file_format: str, size: str, kind: str, pauses: list[bool]
    ) -> None:
        assume(engine != "first-row" or kind != "marked rows")
        options = {"file.format": file_format, **SIZES[size], **KINDS[kind]}
        with new_table(scenario, options) as table:
            for changes, is_pause in zip(scenario.commits, pauses, strict=False):
                write(table, scenario, changes)
                if is_pause:
                    check_compaction(table, scenario, "full")
            check_compaction(table, scenario, "full")
            check_top_level(table)
            # A late row comes back once the delete it lost against is compacted away, and other
            # engines make another row of a key alone where they look it up.
            is_once = engine == "deduplicate" and not any(pauses[: len(scenario.commits)])
            if is_once or engine == "first-row":
                check_rows(table, scenario)

    holds()


def test_a_minor_compaction_changes_no_row_and_leaves_nothing_to_do():
    """Whole rows only: other engines forget the values of a retract, as Java does."""

    @examples(TABLES)
    @given(
        scenarios("deduplicate"),
        st.sampled_from(list(SIZES)),
        st.integers(1, 3),
        st.sampled_from(["true", "false"]),
    )
    def holds(scenario: Scenario, size: str, trigger: int, force: str) -> None:
        options = {
            **SIZES[size],
            "num-sorted-run.compaction-trigger": str(trigger),
            "compaction.force-up-level-0": force,
        }
        with new_table(scenario, options) as table:
            for changes in scenario.commits:
                write(table, scenario, changes)
                check_compaction(table, scenario, "minor")
            check_compaction(table, scenario, "full")

    holds()


def write(table: lake.Table, scenario: Scenario, changes: list[Change]) -> None:
    rows = pa.Table.from_pylist([row for _, row in changes], schema=scenario.arrow_schema)
    try:
        table.write(rows, [kind for kind, _ in changes])
    except lake.LakeError:  # an overflow, or retracts that the engine does not take
        assume(False)


def check_compaction(table: lake.Table, scenario: Scenario, strategy: str) -> None:
    """Every snapshot is read as before; the next compaction plans nothing."""
    try:
        before = {each.id: read(table, scenario, each.id) for each in table.snapshots()}
    except lake.LakeError:  # the rows of several commits do not go together
        assume(False)
    last = max(before, default=0)
    if (
        scenario.options["merge-engine"] == "first-row"
        or table.options.deletion_vectors_enabled
        or int(table.options.bucket) == POSTPONE_BUCKET
    ):  # what was not visible is, afterwards
        before.pop(last, None)
    report = compacted(table, strategy)
    for number, rows in before.items():
        assert_same_rows(read(table, scenario, number), rows)
    for number in report.snapshot_ids:
        if last in before:
            assert_same_rows(read(table, scenario, number), before[last])
    assert table.plan_compaction(strategy=strategy).units == ()
    assert table.compact(strategy=strategy).snapshot_ids == ()


def compacted(table: lake.Table, strategy: str) -> CompactReport:
    try:
        return table.compact(strategy=strategy, executor="serial")
    except lake.InvalidRequestError:
        # Postponed rows meet here for the first time; where a compaction looks rows up, it merges
        # a key's only row as well. What else is refused was refused when written or read.
        assume(int(table.options.bucket) != POSTPONE_BUCKET)
        assume(not table.options.deletion_vectors_enabled)
        raise


def check_rows(table: lake.Table, scenario: Scenario) -> None:
    """Reads see what the commits make of each key once they have been compacted."""
    model = scenario.model()
    for changes in scenario.commits:
        model.write(changes)
    wanted = pa.Table.from_pylist(model.read(), scenario.arrow_schema)
    assert_same_rows(
        loosened(rows_of(table.scan().to_arrow()), scenario), loosened(rows_of(wanted), scenario)
    )


def check_top_level(table: lake.Table) -> None:
    """Everything is on the highest level, and no row that only takes back is left."""
    snapshot = table.latest_snapshot()
    if snapshot is None:
        return
    for entry in plan_files(table._handle, snapshot):
        assert entry.file.level == table.options.level_count - 1
        assert entry.file.delete_row_count == 0


def read(table: lake.Table, scenario: Scenario, snapshot: int) -> list[dict]:
    return loosened(rows_of(table.scan(snapshot=snapshot).to_arrow()), scenario)
